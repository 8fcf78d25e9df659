package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// checkConflicts reports wanted folders that belong to others.
func (p *Planner) checkConflicts(ctx context.Context, desired Desired, plan Plan) ([]PlanProblem, error) {
	view, err := p.reader.view(ctx, desired.Owner)
	if err != nil {
		return nil, err
	}
	formerly := ""
	if plan.Identity == Renamed {
		formerly = desired.State.Owner.Name
	}
	found, err := view.FindConflicts(ctx, desired.After, plan.folders(), formerly)
	if err != nil {
		return nil, err
	}
	var adopted, refused, adoptable []string
	for _, conflict := range found {
		text := conflict.String()
		text = strings.ToUpper(text[:1]) + text[1:] + "."
		switch {
		case !conflict.IsAdoptable():
			refused = append(refused, text)
		case !desired.Adopt:
			adoptable = append(adoptable, text)
		default:
			adopted = append(adopted, text)
		}
	}
	problems := newConflictErrors(refused, adoptable)
	if len(adopted) > 0 {
		problems = append(problems, newWarning("adopt", "Folders are taken over", "%s", wording.Lines(adopted, mostListed)))
	}
	return problems, nil
}

// newConflictErrors returns one error for all folders: a wrong name may claim hundreds of them.
func newConflictErrors(refused, adoptable []string) []PlanProblem {
	remedy := ""
	if len(adoptable) > 0 {
		remedy = fmt.Sprintf(" To take %s over with all content, set adopt = true.", wording.OneOrMany(len(adoptable), "it", "them"))
		if len(refused) > 0 {
			remedy = fmt.Sprintf("\n\nOf these, %d can be taken over with all content: set adopt = true once the others are resolved.",
				len(adoptable))
		}
	}
	summary := "Folder does not belong to this assignment"
	switch all := slices.Concat(refused, adoptable); len(all) {
	case 0:
		return nil
	case 1:
		return []PlanProblem{newError("gitops_repo", summary, "%s%s", all[0], remedy)}
	default:
		remedy = strings.TrimSpace(remedy + " If they are another assignment's, give this one another path, or take the deployment targets out " +
			"of one of the fleets.")
		return []PlanProblem{newError("gitops_repo", summary, "%d folders that the fleet wants belong to others:\n%s\n\n%s",
			len(all), wording.Lines(all, wording.Named), remedy)}
	}
}

// dropConflicts returns the folders without conflicts.
func dropConflicts(trees folder.Trees, conflicts []gitops.Conflict) folder.Trees {
	if len(conflicts) == 0 {
		return trees
	}
	left := trees.Clone()
	for _, conflict := range conflicts {
		delete(left[conflict.Host], conflict.DeploymentTarget)
		if len(left[conflict.Host]) == 0 {
			delete(left, conflict.Host)
		}
	}
	return left
}

// findListed returns the folders to be removed that other owners' records list. If the owner's own record lists one as
// well, one of the two was changed by hand: a problem names the record, unless adopt rewrites it.
func (p *Planner) findListed(
	ctx context.Context, desired Desired, identity Identity, goes folder.Trees,
) ([]gitops.Conflict, []PlanProblem, error) {
	if goes.Count() == 0 {
		return nil, nil, nil
	}
	owner, commit := desired.presentOwner(identity), ""
	view, err := p.reader.view(ctx, owner)
	if err != nil {
		return nil, nil, err
	}
	if identity == Same || identity == Renamed {
		commit = desired.State.seenCommit()
	}
	listed, err := view.FindListedByOthers(ctx, goes, commit)
	if err != nil || len(listed) == 0 || desired.Adopt {
		return listed, nil, err
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	var disputed []string
	for _, conflict := range listed {
		if records.Trees.Has(conflict.Host, conflict.DeploymentTarget) {
			conflict.Record = owner.repositoryOwner().RecordPath(conflict.Host)
			disputed = append(disputed, conflict.String()+".")
		}
	}
	if len(disputed) == 0 {
		return listed, nil, nil
	}
	return listed, []PlanProblem{newError("gitops_repo", "Record lists a folder of another assignment", "%s",
		wording.Lines(disputed, wording.Named))}, nil
}

// checkMoves refuses to move the folders of a renamed host if others have something beside them: see
// gitops.ErrHostNotEmpty.
func (p *Planner) checkMoves(ctx context.Context, desired Desired, plan Plan) ([]PlanProblem, error) {
	moving := folder.Trees{}
	for former := range desired.Renames {
		if targets := plan.folders()[former]; len(targets) > 0 {
			moving[former] = targets
		}
	}
	if len(moving) == 0 || plan.Identity == Moved {
		return nil, nil
	}
	view, err := p.reader.view(ctx, desired.presentOwner(plan.Identity))
	if err != nil {
		return nil, err
	}
	beside, err := view.FindForeignEntries(ctx, moving)
	if err != nil || len(beside) == 0 {
		return nil, err
	}
	return []PlanProblem{newError("gitops_repo", "Folder of a cluster type cannot move",
		"Others have files in the folder of a renamed cluster type: %s. The folder would stay, and agents that follow it would "+
			"remove the moved workloads. Remove the files first. If they belong to another assignment, take its folders over with "+
			"adopt = true, have it leave the cluster type, rename, and give them back: the guide \"Assignments\" has the steps.",
		wording.List(wording.Quoted(beside), wording.Named))}, nil
}
