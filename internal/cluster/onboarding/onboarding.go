// Package onboarding applies the objects of an agent to a cluster and removes them again. It tracks which fields
// differ, who else manages them, and which objects Flotilla has created. Its decisions are pure functions. "" and zero
// values mean none or unknown.
package onboarding

import (
	"cmp"
	"context"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// ClusterAPI is the access to a cluster, which *kube.ClusterClient implements.
type ClusterAPI interface {
	ObjectReader
	ObjectWriter
}

// ObjectReader reads objects and kinds.
type ObjectReader interface {
	Read(ctx context.Context, ref kube.Ref) (*unstructured.Unstructured, error)
	List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error)
	Resources(ctx context.Context) (found []kube.Resource, incomplete bool, err error)
}

// ObjectWriter changes objects, also as a dry run.
type ObjectWriter interface {
	Apply(ctx context.Context, object *unstructured.Unstructured, options kube.ApplyOptions) (kube.Applied, error)
	Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, ref kube.Ref, uid string) error
	Try(ctx context.Context, verb string, ref kube.Ref) error
}

// Record is an applied object as stored in the state.
type Record struct {
	kube.Ref
	agent.Handling
	Type    string `json:"type,omitempty"` // label of the clusters that share it; "" for all
	UID     string `json:"uid,omitempty"`
	Created bool   `json:"made,omitempty"` // by Flotilla
}

// ID returns the object's identity.
func (r *Record) ID() agent.ID {
	return agent.ID{OnHub: r.OnHub, Group: r.Group(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// RecordOf returns the record of an object before it is applied.
func RecordOf(object *agent.StagedObject) Record {
	return Record{
		Ref: kube.RefOf(object.Unstructured), Handling: object.Handling, Type: object.GetLabels()[reconciler.TypeLabel],
	}
}

// createdAnnotation marks objects that Flotilla has created. Its value is the cluster's mark, so a copy on another
// cluster does not count.
const createdAnnotation = "flotilla.dev/made-on"

// forEach calls do in parallel and returns the error with the lowest index.
func forEach(count int, do func(i int) error) error {
	errs := make([]error, count)
	kube.Each(count, func(i int) { errs[i] = do(i) })
	return cmp.Or(errs...)
}

func createdHere(live *unstructured.Unstructured, mark string) bool {
	return live != nil && live.GetAnnotations()[createdAnnotation] == mark && mark != ""
}

func prepareForApply(object *unstructured.Unstructured, created bool, mark string) *unstructured.Unstructured {
	ready := object.DeepCopy()
	annotations := ready.GetAnnotations()
	delete(annotations, createdAnnotation)
	if created && mark != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[createdAnnotation] = mark
	}
	ready.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(ready.Object, "metadata", "annotations")
	}
	unstructured.RemoveNestedField(ready.Object, "status")
	unstructured.RemoveNestedField(ready.Object, "metadata", "creationTimestamp")
	encodeSecret(ready)
	return ready
}

// encodeSecret moves stringData to data: API servers do not track its managers.
func encodeSecret(object *unstructured.Unstructured) {
	if object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return
	}
	texts, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
	if len(texts) == 0 {
		return
	}
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	object.Object["data"] = data
	delete(object.Object, "stringData")
}
