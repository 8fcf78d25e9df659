package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Manifests is a set of what the manifests of deployment targets can be: charts or not, in each storage.
type Manifests int

// The sets. A deployment target's manifests are in one of the first three, and in one of the two that follow.
const (
	Git Manifests = 1<<iota | 8<<iota
	Helm
	OCI
	Plain  Manifests = 1 | 2 | 4
	Charts Manifests = 8 | 16 | 32
	Any              = Plain | Charts
)

// ManifestsOf are the manifests of a storage that are charts, or that are not.
func ManifestsOf(storage string, isChart bool) Manifests {
	form, in := Plain, OCI
	if isChart {
		form = Charts
	}
	switch storage {
	case "git":
		in = Git
	case "helm":
		in = Helm
	}
	return form & in
}

// Has says whether some of the manifests are in the set.
func (m Manifests) Has(some Manifests) bool { return m&some != 0 }

// String is a set as messages say it.
func (m Manifests) String() string {
	return map[Manifests]string{
		Git: `storage "git"`, Helm: `storage "helm"`, OCI: `storage "oci"`, Helm | OCI: `storage "helm" or "oci"`,
		Plain: "manifests other than charts", Charts: "charts", Any: "all manifests",
		(Git | OCI) & Plain: `manifests of storage "git" or "oci" that are no charts`,
	}[m]
}

// KindFor returns the kind of the object that deploys manifests; nil where Flotilla renders none.
func (r *Reconciler) KindFor(manifests Manifests) *Kind {
	for i := range r.Kinds {
		if kind := &r.Kinds[i]; kind.For.Has(manifests) && slices.Contains(r.Deploys, kind.Kind) {
			return kind
		}
	}
	return nil
}

// Deploying returns the reconciler whose object, among those of a folder, deploys what an assignment has; nil where there is none.
func Deploying(objects []map[string]any) *Reconciler {
	for _, object := range objects {
		of := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
		if KindOf(of.Group, of.Kind) == nil {
			continue
		}
		if by := first(all, func(one *Reconciler) bool { return slices.Contains(one.Deploys, of.Kind) }); by != nil {
			return by
		}
	}
	return nil
}

// DeployedManifests are the manifests for which Flotilla renders an object.
func (r *Reconciler) DeployedManifests() Manifests {
	var all Manifests
	for _, kind := range r.Kinds {
		if slices.Contains(r.Deploys, kind.Kind) {
			all |= kind.For
		}
	}
	return all
}

// HasParameter says whether a reconciler has a kind over whose spec a parameter is merged.
func (r *Reconciler) HasParameter(name string) bool {
	return r != nil && slices.ContainsFunc(r.Kinds, func(kind Kind) bool { return kind.Parameter == name })
}

// Substituting returns the reconciler that replaces variables in manifests.
func Substituting() *Reconciler {
	return first(all, func(one *Reconciler) bool { return one.NoVariable != nil })
}

// HasProjects says whether objects of a reconciler belong to projects.
func (r *Reconciler) HasProjects() bool {
	return r != nil && slices.ContainsFunc(r.Kinds, func(kind Kind) bool { return kind.Project != "" })
}
