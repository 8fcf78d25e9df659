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
func (p *Planner) checkConflicts(ctx context.Context, desired Desired, plan *Plan) error {
	view, err := p.reader.view(ctx, desired.Owner)
	if err != nil {
		return err
	}
	formerly := ""
	if plan.Identity == Renamed {
		formerly = desired.State.Owner.Name
	}
	found, err := view.FindConflicts(ctx, desired.After, plan.folders(), formerly)
	if err != nil {
		return err
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
	plan.addConflicts(refused, adoptable)
	if len(adopted) > 0 {
		plan.addWarning("adopt", "Folders are taken over", "%s", wording.Lines(adopted, mostListed))
	}
	return nil
}

// addConflicts adds one error for all folders: a wrong name may claim hundreds of them.
func (p *Plan) addConflicts(refused, adoptable []string) {
	remedy := ""
	if len(adoptable) > 0 {
		remedy = fmt.Sprintf(" To take %s over, with what is in %[1]s, set adopt = true.", wording.OneOrMany(len(adoptable), "it", "them"))
		if len(refused) > 0 {
			remedy = fmt.Sprintf(
				"\n\nOf these, %d can be taken over, with what is in them: set adopt = true once the others are resolved.",
				len(adoptable),
			)
		}
	}
	switch all := slices.Concat(refused, adoptable); {
	case len(all) == 1:
		p.addError("gitops_repo", "Folder does not belong to this assignment", "%s%s", all[0], remedy)
	case len(all) > 1:
		p.addError(
			"gitops_repo",
			"Folder does not belong to this assignment",
			"%d folders that the fleet wants belong to others:\n%s\n\n%s",
			len(all),
			wording.Lines(all, wording.Named),
			strings.TrimSpace(
				remedy+" If they are another assignment's, give this one another path, or take the deployment targets out of one of the fleets.",
			),
		)
	}
}

// dropListed returns the folders that no other owner's record lists at a commit; at the tip if it is "".
func dropListed(ctx context.Context, view *gitops.OwnerView, trees folder.Trees, commit string) (folder.Trees, error) {
	listed, err := view.FindListedByOthers(ctx, trees, commit)
	if err != nil || len(listed) == 0 {
		return trees, err
	}
	own := trees.Clone()
	for _, conflict := range listed {
		dropConflict(own, conflict)
	}
	return own, nil
}

func dropConflict(trees folder.Trees, conflict gitops.Conflict) {
	delete(trees[conflict.Host], conflict.DeploymentTarget)
	if len(trees[conflict.Host]) == 0 {
		delete(trees, conflict.Host)
	}
}

// spareListed keeps folders that other owners' records list from being removed. If the owner's own record lists such a
// folder as well, one of the two was changed by hand: the plan names the record, unless adopt rewrites it.
func (p *Planner) spareListed(ctx context.Context, desired Desired, plan *Plan) error {
	goes := mergeTrees(plan.Remove, plan.Found.Without(desired.After))
	if goes.Count() == 0 {
		return nil
	}
	owner := plan.ownerThere(desired)
	view, err := p.reader.view(ctx, owner)
	if err != nil {
		return err
	}
	commit := ""
	if plan.Identity == Same || plan.Identity == Renamed {
		commit = desired.State.seenCommit()
	}
	listed, err := view.FindListedByOthers(ctx, goes, commit)
	if err != nil || len(listed) == 0 {
		return err
	}
	records, err := view.ReadRecords(ctx, "")
	if err != nil {
		return err
	}
	var disputed []string
	plan.Before, plan.Found, plan.Remove = plan.Before.Clone(), plan.Found.Clone(), plan.Remove.Clone()
	for _, conflict := range listed {
		for _, trees := range []folder.Trees{plan.Before, plan.Found, plan.Remove} {
			dropConflict(trees, conflict)
		}
		if records.Trees.Has(conflict.Host, conflict.DeploymentTarget) && !desired.Adopt {
			conflict.Record = owner.repositoryOwner().RecordPath(conflict.Host)
			disputed = append(disputed, conflict.String()+".")
		}
	}
	if len(disputed) > 0 {
		plan.addError("gitops_repo", "Record lists a folder of another assignment", "%s", wording.Lines(disputed, wording.Named))
	}
	return nil
}
