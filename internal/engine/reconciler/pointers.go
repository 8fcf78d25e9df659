package reconciler

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
