package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Look is how a reconciler is asked to read a branch now, and not only when its interval has passed: by an annotation of the
// objects that name the branch.
type Look struct {
	// Kind is the kind of these objects.
	Kind string
	// Annotation is set to Value. Where Value is "", each value that it has not had yet asks: that is the time.
	Annotation, Value string
	// reads says whether an object reads a branch.
	reads func(o *Object, at Location) bool
}

// Reads says whether an object is of the kind, and reads a branch.
func (l *Look) Reads(one *unstructured.Unstructured, at Location) bool {
	of := kindOf(one)
	return of != nil && of.Kind == l.Kind && l.reads(newObject(one), at)
}

// gitRepositoryReads says whether a GitRepository of Flux reads a branch.
func gitRepositoryReads(o *Object, at Location) bool {
	return SameRepository(o.text("spec", "url"), at.URL) && o.text("spec", "ref", "branch") == at.Branch
}

// applicationReads says whether an Application of Argo CD reads a branch.
func applicationReads(o *Object, at Location) bool {
	sources, _ := o.applicationSources()
	return slices.ContainsFunc(sources, func(source entry) bool {
		return SameRepository(source.text("repoURL"), at.URL) && source.isOfBranch(at.Branch)
	})
}
