package reconciler

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Pointer is a field of a spec that has what a deployment target says, so that the one can be read from the other.
type Pointer struct {
	Field string // its path; a step "0" is the only element of a list
	Is    Said
}

// Said is what a deployment target says: an attribute of its manifests, or its namespace.
type Said string

// What fields can have.
const (
	Repo      Said = "repo"
	Path      Said = "path"
	Chart     Said = "chart"
	Version   Said = "version"
	Branch    Said = "branch"
	Revision  Said = "revision" // what is taken of a repository: a commit, a tag, a branch or a version
	Ref       Said = "ref"      // the same as an object: {branch}, {tag}, {commit}, {semver} or {digest}
	Namespace Said = "namespace"
)

var (
	kustomizationPointers = []Pointer{{"path", Path}, {"targetNamespace", Namespace}}
	// The chart of a GitRepository or a Bucket is a path.
	helmReleasePointers = []Pointer{{"chart.spec.chart", Chart}, {"chart.spec.version", Version}, {"targetNamespace", Namespace}}
	sourcePointers      = []Pointer{{"url", Repo}, {"ref", Ref}}
	chartsPointers      = []Pointer{{"url", Repo}}
	applicationPointers = []Pointer{
		{
			"source.repoURL",
			Repo,
		}, {"source.path", Path}, {"source.chart", Chart}, {"source.targetRevision", Revision}, {"destination.namespace", Namespace},
	}
	gitRepoPointers = []Pointer{{"repo", Repo}, {"branch", Branch}, {"revision", Revision}, {"paths.0", Path}, {"targetNamespace", Namespace}}
	helmOpPointers  = []Pointer{{"helm.repo", Repo}, {"helm.chart", Chart}, {"helm.version", Version}, {"defaultNamespace", Namespace}}
	syncPointers    = []Pointer{
		{
			"git.repo",
			Repo,
		}, {"git.branch", Branch}, {"git.revision", Revision}, {"git.dir", Path}, {"helm.repo", Repo}, {"helm.chart", Chart}, {"helm.version", Version},
	}
)

// DigestAnnotation has the digest of an artifact, on objects whose spec has no field for it. The templates write it, so that a
// version which is published again is a change.
const DigestAnnotation = "flotilla.dev/digest"

// IsRevision says whether a field of an object that deploys or fetches, by the steps of its path, says what is taken of a
// repository: a commit, a branch, a tag, a version or a digest.
func IsRevision(kind string, path []string) bool {
	of, above := KindNamed(kind), ""
	if of != nil && of.Template != "" {
		of, above = KindNamed(of.Makes[0]), "spec."+of.Template+"."
	}
	if of == nil {
		return false
	}
	field, at := strings.Join(path, ".")+".", above+"spec."
	if field == above+"metadata.annotations."+DigestAnnotation+"." {
		return true
	}
	return slices.ContainsFunc(of.Pointers, func(p Pointer) bool {
		return slices.Contains([]Said{Version, Branch, Revision, Ref}, p.Is) && strings.HasPrefix(field, at+p.Field+".")
	})
}

// SaidAt returns what a deployment target says of a field of the spec, or of what is below it; "" if it says nothing.
func (k *Kind) SaidAt(steps []string) Said {
	field := strings.NewReplacer("[", "", "]", "").Replace(strings.Join(steps, ".")) + "."
	for _, pointer := range k.Pointers {
		if strings.HasPrefix(field, pointer.Field+".") {
			return pointer.Is
		}
	}
	return ""
}

// Attribute returns the attribute of manifests that says it: of a revision, the one that counts.
func (s Said) Attribute(of *folder.Manifests) string {
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
