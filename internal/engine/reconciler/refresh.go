package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Refresh is the annotation that makes objects read their branch at once.
type Refresh struct {
	// Kind is the kind of the objects.
	Kind string
	// Annotation is set to Value, or to the current time if Value is "", because any new value triggers a refresh.
	Annotation, Value string
	reads             func(o *ListedObject, at folder.Location) bool
}

// Reads reports whether an object has the kind and reads a branch.
func (r *Refresh) Reads(one *unstructured.Unstructured, at folder.Location) bool {
	of := kindOf(one)
	return of != nil && of.Kind == r.Kind && r.reads(newObject(one), at)
}

func gitRepositoryReads(o *ListedObject, at folder.Location) bool {
	return SameRepository(o.text("spec", "url"), at.URL) && o.text("spec", "ref", "branch") == at.Branch
}

func applicationReads(o *ListedObject, at folder.Location) bool {
	sources, _ := applicationSources(o)
	return slices.ContainsFunc(sources, func(source jsonObject) bool {
		return SameRepository(source.text("repoURL"), at.URL) && readsBranch(source, at.Branch)
	})
}
