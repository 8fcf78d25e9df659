package reconciler

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Followed is what an object says of the final objects in the folder of an assignment, which it follows. Each commit of the
// branch is a new revision for it, whoever made that and whatever it changes.
type Followed struct {
	// Folder is the key of the assignment.
	Folder string
	// Commit is the one that the status is about; "" where that is not known. NoFolder says that the object has not found
	// the folder: what it has seen of the branch is older than the folder.
	Commit   string
	NoFolder bool
	// Applied is the commit whose content is there; "" where that is not known.
	Applied string
	// OfChart says that the object says itself which version of a chart runs.
	OfChart bool
	// Status does not depend on whether a source has a newer revision.
	verdict.Status
}

// Followed is what an object says of the folder of final objects at a location that it may follow: where the folder is not one
// of that location's, it follows something else of the same path. ok is false where it certainly follows none.
func (o *Listing) Followed(one *Object, at Location) (followed Followed, ok bool) {
	final := one.of.Final
	if final == nil {
		return Followed{}, false
	}
	key, ok := strings.CutSuffix(clean(one.text(append([]string{"spec"}, strings.Split(final.Path, ".")...)...)), "/"+folder.ObjectsFolder)
	if within := clean(at.Path); ok && within != "" {
		key, ok = strings.CutPrefix(key, within+"/")
	}
	if !ok {
		return Followed{}, false
	}
	whatever := *o
	whatever.anyRevision = true
	applied := final.Has(&whatever, one)
	followed = Followed{
		Folder: key, Commit: applied.Attempted, NoFolder: applied.NoFolder, Applied: applied.Commit, OfChart: final.Wraps, Status: applied.Status,
	}
	if followed.Commit == "" {
		followed.Commit = applied.Commit
	}
	return followed, true
}

// kustomizationHas is what a Kustomization has applied of a GitRepository.
func (o *Listing) kustomizationHas(k *Object) Applied { return o.fluxApplied(k, o.source(k)) }

// helmReleaseHas is what a HelmRelease has of a GitRepository: its HelmChart, which has the digest of the objects in its
// version, was made of a commit.
func (o *Listing) helmReleaseHas(h *Object) Applied {
	has := Applied{Status: o.helmRelease(h)}
	if chart := o.source(h); chart != nil {
		has.Commit = commitOf(chart.text("status", "observedSourceArtifactRevision"))
	}
	return has
}

// applicationHas is what an Application of one source has.
func (o *Listing) applicationHas(a *Object) Applied { return o.argoApplied(a, 0, false) }
