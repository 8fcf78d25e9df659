package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// What the objects in the folder of an assignment say is part of its verdict.

// blames says whether what follows a folder names something of an assignment as what has failed.
func blames(applied *reconciler.Applied, folder *Folder) bool {
	return len(belonging(folder, applied.Failing)) > 0
}

// objects is the worst status of the objects that reconcile an assignment; where there are none, the status of
// the root. all is whether every one of them was found.
func (e *evaluation) objects(folder *Folder, applied reconciler.Applied) (said verdict.Status, all bool) {
	if e.report.said == nil || len(folder.Objects) == 0 {
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
			said = verdict.Worst(said, e.lasting(folder, name, e.contentOf(folder, name, &one)))
		case reconciler.IsTemplated(name.Kind):
			unmade := e.report.unmade(name)
			said, all = verdict.Worst(said, unmade), all && unmade.Verdict != verdict.Unknown
		case e.report.isHub: // it is on the cluster itself, and what follows the folder knows of it
			said = verdict.Worst(said, ofRoot(applied.Status))
		case unlisted:
			said, all = verdict.Worst(
				said,
				verdict.Status{Verdict: verdict.Unknown, Message: fmt.Sprintf("%s cannot be read: %s", name, reason)},
			), false
		default:
			said, all = verdict.Worst(said, verdict.Status{Verdict: verdict.Progressing, Message: fmt.Sprintf("%s does not exist", name)}), false
		}
	}
	return said, all
}

// contentOf is the status of an object. Of one that follows the final objects of the folder, it counts whether it is about
// the content of the folder, at whatever commit: another one has no part in the verdict.
func (e *evaluation) contentOf(folder *Folder, name reconciler.ObjectName, one *object) verdict.Status {
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
			reason := cmp.Or(commit.Missing, "the branch does not have commit "+short(of.Commit))
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

// follows says whether an object, or what it has made, follows the final objects of a folder.
func (o *object) follows(folder *Folder) bool {
	return len(o.followed) > 0 && !slices.ContainsFunc(o.followed, func(of reconciler.FinalStatus) bool { return of.Folder != folder.Key() })
}

// lasting is the status of an object whose agent tries again what fails: it has failed when it has said so for a time, and
// the folder has had its content for that time.
func (e *evaluation) lasting(folder *Folder, name reconciler.ObjectName, said verdict.Status) verdict.Status {
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

// rootFails is how long what follows a folder fails until what it has applied before has failed, too. Agents try again: at
// any time, some of many clusters cannot read the repository.
const rootFails = 2 * time.Minute

// rootStatus is the status of what follows a folder as far as it concerns what is there already: that more arrives is no part
// of it, but that nothing can. Objects that were read speak for themselves.
func (e *evaluation) rootStatus(folder *Folder, applied *reconciler.Applied) verdict.Status {
	said := verdict.Status{Verdict: verdict.Ready}
	if applied.Verdict == verdict.Failed {
		said = applied.Status
	}
	// Argo CD may be out of sync with a commit that is newer than the tip.
	if tree, known := e.treeAt(applied.Compared, folder); applied.Hindered.Verdict != "" && (!known || tree == folder.Tree) {
		said = verdict.Worst(said, applied.Hindered)
	}
	said.OfRoot = !slices.ContainsFunc(belonging(folder, applied.Failing), func(name reconciler.ObjectName) bool {
		_, isRead := e.report.find(name)
		return !isRead
	})
	if said.OfRoot && said.Verdict == verdict.Failed && said.Since.Add(rootFails).After(e.in.Time) {
		said.Verdict, said.Message = verdict.Progressing, said.Message+"; it is tried again"
	}
	return said
}

// belonging are those objects that are of an assignment.
func belonging(folder *Folder, names []reconciler.ObjectName) []reconciler.ObjectName {
	var own []reconciler.ObjectName
	for _, name := range names {
		if slices.Contains(folder.Objects, name) || folder.Namespace != "" &&
			(name.Namespace == folder.Namespace || name.Kind == "Namespace" && name.Name == folder.Namespace) {
			own = append(own, name)
		}
	}
	return own
}

// ofRoot is a status that is said of what follows a folder as a whole.
func ofRoot(s verdict.Status) verdict.Status {
	s.OfRoot = true
	return s
}
