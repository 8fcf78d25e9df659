package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Manifests is a set of forms of manifests: charts or not, in each storage.
type Manifests int

// A deployment target's manifests are in one of the first three sets and in Plain or Charts.
const (
	Git Manifests = 1<<iota | 8<<iota
	Helm
	OCI
	Plain  Manifests = 1 | 2 | 4
	Charts Manifests = 8 | 16 | 32
	Any              = Plain | Charts
)

// ManifestsOf returns the set of a storage and form.
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

// Has reports whether the sets overlap.
func (m Manifests) Has(some Manifests) bool { return m&some != 0 }

// String describes a set for messages.
func (m Manifests) String() string {
	return map[Manifests]string{
		Git: `storage "git"`, Helm: `storage "helm"`, OCI: `storage "oci"`, Helm | OCI: `storage "helm" or "oci"`,
		Plain: "manifests other than charts", Charts: "charts", Any: "all manifests",
		(Git | OCI) & Plain: `manifests of storage "git" or "oci" that are no charts`,
	}[m]
}

// KindFor returns the kind that deploys manifests; nil if Flotilla renders none.
func (r *Reconciler) KindFor(manifests Manifests) *ObjectKind {
	for i := range r.Kinds {
		if kind := &r.Kinds[i]; kind.For.Has(manifests) && slices.Contains(r.Deployers, kind.Kind) {
			return kind
		}
	}
	return nil
}

// Deploying returns the reconciler that deploys with one of a folder's objects; nil if there is none.
func Deploying(objects []map[string]any) *Reconciler {
	for _, object := range objects {
		of := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
		if KindOf(of.Group, of.Kind) == nil {
			continue
		}
		if by := first(all, func(one *Reconciler) bool { return slices.Contains(one.Deployers, of.Kind) }); by != nil {
			return by
		}
	}
	return nil
}

// DeployedManifests returns the manifests that Flotilla renders an object for.
func (r *Reconciler) DeployedManifests() Manifests {
	var all Manifests
	for _, kind := range r.Kinds {
		if slices.Contains(r.Deployers, kind.Kind) {
			all |= kind.For
		}
	}
	return all
}

// HasParameter reports whether a parameter changes the spec of one of the kinds.
func (r *Reconciler) HasParameter(name string) bool {
	return r != nil && slices.ContainsFunc(r.Kinds, func(kind ObjectKind) bool { return kind.Parameter == name })
}

// Substituting returns the reconciler that replaces variables in manifests.
func Substituting() *Reconciler {
	return first(all, func(one *Reconciler) bool { return one.NoVariable != nil })
}

// HasProjects reports whether the reconciler's objects belong to projects.
func (r *Reconciler) HasProjects() bool {
	return r != nil && slices.ContainsFunc(r.Kinds, func(kind ObjectKind) bool { return kind.Project != "" })
}
