package delivery

import (
	"context"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
	return []PlanProblem{newError("gitops_repo", "Folder of a cluster type cannot move", "%s", foreignEntriesText(beside))}, nil
}

func foreignEntriesText(beside []string) string {
	return fmt.Sprintf(
		"Others have files in the folder of a renamed cluster type: %s. The folder would stay, and agents that follow it would "+
			"remove the moved workloads. Remove the files first. If they belong to another assignment, take its folders over with "+
			"adopt = true, have it leave the cluster type, rename, and give them back: the guide \"Assignments\" has the steps.",
		wording.List(wording.Quoted(beside), wording.Named),
	)
}
