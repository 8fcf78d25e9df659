// Package onboarding brings the objects of an agent onto a cluster, and takes them away again: what differs there, who
// else manages it, what was made and what was found, what waits for what. What is decided is decided by pure functions;
// a cluster is asked through a small interface. It knows neither Terraform nor Git.
package onboarding

import (
	"context"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
)

// Cluster is what is asked of a cluster: a *kube.Client.
type Cluster interface {
	Read(ctx context.Context, ref kube.Ref) (*unstructured.Unstructured, error)
	Apply(ctx context.Context, object *unstructured.Unstructured, options kube.ApplyOptions) (kube.Applied, error)
	Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, ref kube.Ref, options kube.DeleteOptions) error
	List(ctx context.Context, kind kube.Kind, options kube.ListOptions) (kube.List, error)
	Resolve(ctx context.Context, apiVersion, kind string) (resource kube.Resource, served bool, err error)
	Resources(ctx context.Context) (found []kube.Resource, incomplete bool, err error)
}

// Record is an object that was put onto a cluster, as a state remembers it.
type Record struct {
	Where      agent.Where `json:"where"`
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	Stage      agent.Stage `json:"stage"`
	Part       agent.Part  `json:"part"`
	Shared     bool        `json:"shared,omitempty"`
	Partial    bool        `json:"partial,omitempty"`
	// Type is the label that says for which cluster type a shared object is; "" for all.
	Type string `json:"type,omitempty"`
	// UID is that of the object.
	UID string `json:"uid,omitempty"`
	// Created says that it was not there before.
	Created bool `json:"made,omitempty"`
}

// Ref names the object on its cluster.
func (r *Record) Ref() kube.Ref {
	return kube.Ref{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// ID is the identity of the object wherever it is.
func (r *Record) ID() agent.ID {
	return agent.ID{Where: r.Where, Group: r.Ref().Group(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// RecordOf is the record of an object that has not been put anywhere yet.
func RecordOf(object *agent.Object) Record {
	ref := kube.RefOf(object.Unstructured)
	return Record{
		Where: object.Where, APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Stage: object.Stage, Part: object.Part, Shared: object.Shared, Partial: object.Partial, Type: object.GetLabels()[typeLabel],
	}
}

const (
	// createdAnnotation is on objects that were made, not found: with the uid of the cluster on which that was, since a
	// copy on another cluster was made by whoever copied it.
	createdAnnotation = "flotilla.dev/made-on"
	// The labels that internal/agent gives its objects.
	clusterLabel     = "flotilla.dev/cluster"
	typeLabel        = "flotilla.dev/cluster-type"
	environmentLabel = "flotilla.dev/environment"
)

// Identify returns what tells a cluster from another one in its place: the uid of the namespace kube-system; "unknown"
// where the credentials may not read that.
func Identify(ctx context.Context, cluster Cluster) (string, error) {
	live, err := cluster.Read(ctx, kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"})
	switch {
	case kube.ReasonOf(err) == kube.ReasonForbidden, err == nil && live == nil:
		return "unknown", nil
	case err != nil:
		return "", err
	}
	return string(live.GetUID()), nil
}

// createdHere says whether an object was made by Flotilla on this very cluster.
func createdHere(live *unstructured.Unstructured, uid string) bool {
	return live != nil && live.GetAnnotations()[createdAnnotation] == uid && uid != ""
}

// isOurs says whether Flotilla has applied an object.
func isOurs(live *unstructured.Unstructured) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == kube.FieldManager && entry.Operation == "Apply" {
			return true
		}
	}
	return false
}

// prepared is an object as it is applied where there is a live one, or none.
func prepared(object *unstructured.Unstructured, created bool, uid string) *unstructured.Unstructured {
	ready := object.DeepCopy()
	annotations := ready.GetAnnotations()
	delete(annotations, createdAnnotation)
	if created && uid != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[createdAnnotation] = uid
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

// encodeSecret writes the texts of a Secret as an API server keeps them: of stringData nobody could say who manages it.
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
