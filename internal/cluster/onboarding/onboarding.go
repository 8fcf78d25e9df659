// Package onboarding applies the objects of an agent to a cluster, and removes them again. It knows which fields differ
// there, who else manages them, which objects Flotilla has created and which were there before, and in which order they
// are applied and removed. The decisions are pure functions; a cluster is reached through a small interface. The
// package knows neither Terraform nor Git.
package onboarding

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Cluster is what this package needs of a cluster. A *kube.Client has it.
type Cluster interface {
	Read(ctx context.Context, ref kube.Ref) (*unstructured.Unstructured, error)
	Apply(ctx context.Context, object *unstructured.Unstructured, options kube.ApplyOptions) (kube.Applied, error)
	Patch(ctx context.Context, ref kube.Ref, patch map[string]any) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, ref kube.Ref, uid string) error
	Try(ctx context.Context, verb string, ref kube.Ref) error
	List(ctx context.Context, kind kube.Kind, options kube.ListOptions) (kube.List, error)
	Resources(ctx context.Context) (found []kube.Resource, incomplete bool, err error)
}

// Record is an object that was applied to a cluster, in the form in which the state keeps it.
type Record struct {
	OnHub      bool        `json:"on_hub,omitempty"`
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	Stage      agent.Stage `json:"stage"`
	Part       agent.Part  `json:"part"`
	Shared     bool        `json:"shared,omitempty"`
	Partial    bool        `json:"partial,omitempty"`
	// Merged are the keys of data that credentials and feedback have in an object of the agent's own manifests.
	Merged []string `json:"merged,omitempty"`
	// Type is the label with the cluster type that a shared object is for; "" for all types.
	Type string `json:"type,omitempty"`
	// Environment is the label with the environment that a shared object is for; "" for all environments.
	Environment string `json:"environment,omitempty"`
	// UID is the uid of the object.
	UID string `json:"uid,omitempty"`
	// Created says that Flotilla has created the object: it was not there before.
	Created bool `json:"made,omitempty"`
}

// Ref is the reference of the object on its cluster.
func (r *Record) Ref() kube.Ref {
	return kube.Ref{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// ID is the identity of the object.
func (r *Record) ID() agent.ID {
	return agent.ID{OnHub: r.OnHub, Group: r.Ref().Group(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// RecordOf is the record of an object that has not been applied yet: without UID and Created.
func RecordOf(object *agent.Object) Record {
	ref := kube.RefOf(object.Unstructured)
	return Record{
		OnHub: object.OnHub, APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		Stage: object.Stage, Part: object.Part, Shared: object.Shared, Partial: object.Partial, Merged: object.Merged, Type: object.GetLabels()[reconciler.TypeLabel], Environment: object.Environment,
	}
}

// createdAnnotation is on the objects that Flotilla has created. Its value is the mark of the cluster, so that it
// says nothing about a copy of the object on another cluster.
const createdAnnotation = "flotilla.dev/made-on"

// each calls do for every number below count, many at once, and returns the first error in the order of the numbers.
func each(count int, do func(i int) error) error {
	errs := make([]error, count)
	kube.Each(count, func(i int) { errs[i] = do(i) })
	return cmp.Or(errs...)
}

// createdHere says whether Flotilla has created an object on the cluster with this mark.
func createdHere(live *unstructured.Unstructured, mark string) bool {
	return live != nil && live.GetAnnotations()[createdAnnotation] == mark && mark != ""
}

// isOurs says whether Flotilla has applied an object.
func isOurs(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), isOurEntry)
}

// prepared is an object in the form in which it is applied. created says whether Flotilla creates it or has created it.
func prepared(object *unstructured.Unstructured, created bool, mark string) *unstructured.Unstructured {
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

// encodeSecret writes the texts of a Secret as data, which is how an API server keeps them: it does not keep who
// manages the fields of stringData.
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
