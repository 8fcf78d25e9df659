package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// blames reports whether the root names an object of the assignment as failed.
func blames(applied *reconciler.Applied, folder *WrittenFolder) bool {
	return len(objectsOf(folder, applied.Failing)) > 0
}

// objectsStatus returns the worst status of the objects that reconcile an assignment, or of the root if there are none.
// all reports whether every object was found.
func (e *evaluation) objectsStatus(folder *WrittenFolder, applied reconciler.Applied) (said verdict.Status, all bool) {
	if e.report.objects == nil || len(folder.Objects) == 0 {
		said = applied.Status
		_, own := e.report.own[folder.Key()]
		said.OfRoot = !own && !blames(&applied, folder)
		return said, true
	}
	said, all = verdict.Status{Verdict: verdict.Ready}, true
	for _, name := range folder.Objects {
		one, found := e.report.find(name)
		reason, unlisted := e.report.unserved[name.Kind]
		switch {
		case found:
			said = verdict.Worst(said, e.confirmFailure(folder, name, e.contentStatus(folder, name, &one)))
		case reconciler.IsTemplated(name.Kind):
			unmade := e.report.explainMissing(name)
			said, all = verdict.Worst(said, unmade), all && unmade.Verdict != verdict.Unknown
		case e.report.isHub: // it is on the cluster itself, and the root knows its status
			said = verdict.Worst(said, markAsRoot(applied.Status))
		case unlisted:
			unread := verdict.Status{Verdict: verdict.Unknown, Message: fmt.Sprintf("%s cannot be read: %s", name, reason)}
			said, all = verdict.Worst(said, unread), false
		default:
			said, all = verdict.Worst(said, verdict.Status{Verdict: verdict.Progressing, Message: fmt.Sprintf("%s does not exist", name)}), false
		}
	}
	return said, all
}

// contentStatus returns the status of an object. If it follows final objects, it counts only for the current content of
// the folder, at any commit.
func (e *evaluation) contentStatus(folder *WrittenFolder, name reconciler.ObjectName, one *observedObject) verdict.Status {
	if !one.follows(folder) {
		return one.Status
	}
	said := verdict.Status{Verdict: verdict.Ready}
	for i := range one.followed {
		of := &one.followed[i]
		is, commit := of.Status, e.in.Commits[of.Commit]
		tree, known := e.treeAt(of.Commit, folder)
		switch {
		case is.Verdict != verdict.Ready && is.Verdict != verdict.Failed:
		case of.NoFolder:
			is = verdict.Status{Verdict: verdict.Progressing, Message: is.Message}
		case of.Commit == "" && is.Verdict == verdict.Ready:
			is = verdict.Status{Verdict: verdict.Unknown, Message: fmt.Sprintf("%s does not say which commit it has applied", name)}
		case of.Commit == "":
		case !known:
			reason := cmp.Or(commit.Reason, "the branch does not have commit "+short(of.Commit))
			is = verdict.Status{Verdict: verdict.Unknown, Message: fmt.Sprintf("what %s has applied cannot be compared: %s", name, reason)}
		case tree != folder.Tree:
			is = verdict.Status{
				Verdict: verdict.Progressing,
				Message: fmt.Sprintf("%s has commit %s, in which its folder is another one", name, short(commit.ID)),
			}
		}
		said = verdict.Worst(said, is)
	}
	return said
}

func (o *observedObject) follows(folder *WrittenFolder) bool {
	return len(o.followed) > 0 && !slices.ContainsFunc(o.followed, func(of reconciler.FinalStatus) bool { return of.Folder != folder.Key() })
}

// confirmFailure reports a failure only after the retry time of the kind, counted from the failure and from the
// folder's content.
func (e *evaluation) confirmFailure(folder *WrittenFolder, name reconciler.ObjectName, said verdict.Status) verdict.Status {
	if said.Verdict != verdict.Failed {
		return said
	}
	kind := reconciler.KindNamed(name.Kind)
	if kind.Retried == 0 || !verdict.Latest(said.Since, folder.Changed).Add(kind.Retried).After(e.in.Time) {
		return said
	}
	said.Verdict, said.Message = verdict.Progressing, said.Message+"; it is tried again"
	return said
}

// rootFails is how long a root must fail before content that it applied earlier has failed, too: of many clusters, some
// cannot read the repository at any time.
const rootFails = 2 * time.Minute

// rootStatus returns the effect of a root on content that is already applied: arriving content has none, but a root
// that cannot apply anything does. Objects that were read have a status of their own.
func (e *evaluation) rootStatus(folder *WrittenFolder, applied *reconciler.Applied) verdict.Status {
	said := verdict.Status{Verdict: verdict.Ready}
	if applied.Verdict == verdict.Failed {
		said = applied.Status
	}
	// Argo CD may be out of sync with a commit that is newer than the tip.
	if tree, known := e.treeAt(applied.Compared, folder); applied.Hindered.Verdict != "" && (!known || tree == folder.Tree) {
		said = verdict.Worst(said, applied.Hindered)
	}
	said.OfRoot = !slices.ContainsFunc(objectsOf(folder, applied.Failing), func(name reconciler.ObjectName) bool {
		_, isRead := e.report.find(name)
		return !isRead
	})
	if said.OfRoot && said.Verdict == verdict.Failed && said.Since.Add(rootFails).After(e.in.Time) {
		said.Verdict, said.Message = verdict.Progressing, said.Message+"; it is tried again"
	}
	return said
}

func objectsOf(folder *WrittenFolder, names []reconciler.ObjectName) []reconciler.ObjectName {
	var own []reconciler.ObjectName
	for _, name := range names {
		if slices.Contains(folder.Objects, name) || folder.Namespace != "" &&
			(name.Namespace == folder.Namespace || name.Kind == "Namespace" && name.Name == folder.Namespace) {
			own = append(own, name)
		}
	}
	return own
}

func markAsRoot(s verdict.Status) verdict.Status {
	s.OfRoot = true
	return s
}
