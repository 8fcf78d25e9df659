package reconciler

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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

// Pointer links a field of a spec to an attribute of a deployment target.
type Pointer struct {
	Field string // path of the field; "0" is the only element of a list
	Is    TargetAttribute
}

// TargetAttribute is an attribute of a deployment target's manifests, or its namespace.
type TargetAttribute string

// The attributes.
const (
	Repo      TargetAttribute = "repo"
	Path      TargetAttribute = "path"
	Chart     TargetAttribute = "chart"
	Version   TargetAttribute = "version"
	Branch    TargetAttribute = "branch"
	Revision  TargetAttribute = "revision" // part of a repository: a commit, a tag, a branch or a version
	Ref       TargetAttribute = "ref"      // a revision as an object: {branch}, {tag}, {commit}, {semver} or {digest}
	Namespace TargetAttribute = "namespace"
)

var (
	kustomizationPointers = []Pointer{{"path", Path}, {"targetNamespace", Namespace}}
	// The chart in a GitRepository or a Bucket is a path.
	helmReleasePointers = []Pointer{{"chart.spec.chart", Chart}, {"chart.spec.version", Version}, {"targetNamespace", Namespace}}
	sourcePointers      = []Pointer{{"url", Repo}, {"ref", Ref}}
	chartsPointers      = []Pointer{{"url", Repo}}
	applicationPointers = []Pointer{
		{"source.repoURL", Repo}, {"source.path", Path}, {"source.chart", Chart},
		{"source.targetRevision", Revision}, {"destination.namespace", Namespace},
	}
	gitRepoPointers = []Pointer{{"repo", Repo}, {"branch", Branch}, {"revision", Revision}, {"paths.0", Path}, {"targetNamespace", Namespace}}
	helmOpPointers  = []Pointer{{"helm.repo", Repo}, {"helm.chart", Chart}, {"helm.version", Version}, {"defaultNamespace", Namespace}}
	syncPointers    = []Pointer{
		{"git.repo", Repo}, {"git.branch", Branch}, {"git.revision", Revision}, {"git.dir", Path},
		{"helm.repo", Repo}, {"helm.chart", Chart}, {"helm.version", Version},
	}
)

// digestAnnotation has an artifact's digest on objects without a field for it, so that republishing a version changes
// them.
const digestAnnotation = "flotilla.dev/digest"

// IsRevision reports whether a field of an object selects a commit, branch, tag, version or digest.
func IsRevision(kind string, path []string) bool {
	of, above := KindNamed(kind), ""
	if of != nil && of.Template != "" {
		of, above = KindNamed(of.Makes[0]), "spec."+of.Template+"."
	}
	if of == nil {
		return false
	}
	field, at := strings.Join(path, ".")+".", above+"spec."
	if field == above+"metadata.annotations."+digestAnnotation+"." {
		return true
	}
	return slices.ContainsFunc(of.Pointers, func(p Pointer) bool {
		return slices.Contains([]TargetAttribute{Version, Branch, Revision, Ref}, p.Is) && strings.HasPrefix(field, at+p.Field+".")
	})
}

// AttributeAt returns the attribute that sets a field or one of its parents; "" if there is none.
func (k *ObjectKind) AttributeAt(steps []string) TargetAttribute {
	field := strings.NewReplacer("[", "", "]", "").Replace(strings.Join(steps, ".")) + "."
	for _, pointer := range k.Pointers {
		if strings.HasPrefix(field, pointer.Field+".") {
			return pointer.Is
		}
	}
	return ""
}

// Attribute returns the name of the attribute; for a revision, the attribute that takes precedence.
func (s TargetAttribute) Attribute(of *folder.Manifests) string {
	if s != Revision && s != Ref {
		return string(s)
	}
	switch {
	case of.Commit != "":
		return "commit"
	case of.Tag != "":
		return "tag"
	case of.Version != "":
		return "version"
	}
	return "branch"
}
