package reconciler

import (
	"cmp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// FinalStatus is the reported status of the final objects in an assignment's folder.
type FinalStatus struct {
	Folder string
	// Commit is the commit that the status is about, Applied the applied commit; "" if unknown. NoFolder means that
	// the object has seen only older commits, without the folder.
	Commit   string
	NoFolder bool
	Applied  string
	// OfChart reports that the object names the running chart version.
	OfChart bool
	// Status ignores newer revisions of the source: every commit on the branch is one.
	verdict.Status
}

// FinalStatus returns the status of the final objects that an object follows at a location, or at the same path
// elsewhere.
func (l *Listing) FinalStatus(one *ListedObject, at folder.Location) (status FinalStatus, ok bool) {
	final := one.of.Final
	if final == nil {
		return FinalStatus{}, false
	}
	key, ok := strings.CutSuffix(clean(one.text(append([]string{"spec"}, strings.Split(final.Path, ".")...)...)), "/"+folder.ObjectsFolder)
	if within := clean(at.Path); ok && within != "" {
		key, ok = strings.CutPrefix(key, within+"/")
	}
	if !ok {
		return FinalStatus{}, false
	}
	lenient := *l
	lenient.anyRevision = true
	applied := final.Applied(&lenient, one)
	return FinalStatus{
		Folder: key, Commit: cmp.Or(applied.Attempted, applied.Commit), NoFolder: applied.NoFolder, Applied: applied.Commit,
		OfChart: final.Wraps, Status: applied.Status,
	}, true
}

func kustomizationFinalApplied(l *Listing, k *ListedObject) Applied {
	return kustomizationApplied(l, k, l.source(k))
}

// helmReleaseFinalApplied returns the commit of the HelmChart, whose version contains the digest of the objects.
func helmReleaseFinalApplied(l *Listing, h *ListedObject) Applied {
	has := Applied{Status: helmReleaseStatus(l, h)}
	if chart := l.source(h); chart != nil {
		has.Commit = commitOf(chart.text("status", "observedSourceArtifactRevision"))
	}
	return has
}

func applicationFinalApplied(l *Listing, a *ListedObject) Applied {
	return applicationApplied(l, a, 0, false)
}
