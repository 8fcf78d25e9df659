package delivery

import (
	"context"
	"fmt"
	"maps"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// PlanDestroy plans a destroy.
func (p *Planner) PlanDestroy(
	ctx context.Context, known *OwnerState, protection rollout.Protection, leave bool, clusters func([]string) []string,
) *Plan {
	plan := &Plan{Identity: Same, Before: p.dropTaken(ctx, known).Current()}
	removal := rollout.RemovalOf(plan.Before, nil, rollout.Fleet{})
	if leave {
		if removal.Total > 0 {
			plan.Problems = append(plan.Problems, newWarning("on_destroy", "Folders stay",
				"%s on %s: their folders stay in the repository, and no assignment manages them until one adopts them.",
				wording.Count(removal.Total, "assignment", "assignments"), wording.Count(len(removal.Hosts()), "host", "hosts")))
		}
		return plan
	}
	plan.Remove = plan.Before
	plan.Problems = append(p.warnOfNoBranch(ctx, known), checkRemoval(protection, removal, clusters, func([]folder.Key) []string {
		return []string{fmt.Sprintf("a destroy, or a replacement, of the assignment %q, or its removal from the "+
			"configuration", known.Owner.Name)}
	})...)
	return plan
}

// warnOfNoBranch warns that a missing branch may only have been renamed.
func (p *Planner) warnOfNoBranch(ctx context.Context, known *OwnerState) []PlanProblem {
	at := known.Owner.Location
	view, err := p.reader.view(ctx, known.Owner)
	if err != nil || view.Tip() != "" || view.IsMissing() || known.Trees.Count() == 0 || known.Proposed {
		return nil
	}
	return []PlanProblem{newWarning("gitops_repo", "Branch does not exist any more",
		"There is no branch %q at %s, so nothing is removed. If it was renamed, the %s of the assignment %q at path %q are still on it, "+
			"and clusters keep running them: set its new name in gitops_repo, and apply that before the destroy.",
		at.Branch, at.URL, wording.Count(known.Trees.Count(), "folder", "folders"), known.Owner.Name, at.Path)}
}

// dropTaken returns the state without folders of other holders and owners, if the repository can be read.
func (p *Planner) dropTaken(ctx context.Context, known *OwnerState) *OwnerState {
	view, err := p.reader.view(ctx, known.Owner)
	if err != nil {
		return known
	}
	held, err := view.FindHeldByOthers(ctx, known.Holder, known.Records)
	if err != nil {
		return known
	}
	listed, err := view.FindListedByOthers(ctx, known.Current(), "")
	if err != nil || len(held)+len(listed) == 0 {
		return known
	}
	own := *known
	own.Trees, own.Drift.Trees = known.Trees.Clone(), maps.Clone(known.Drift.Trees)
	for host := range held {
		delete(own.Trees, host)
	}
	maps.DeleteFunc(own.Drift.Trees, func(key folder.Key, _ string) bool { return held[key.Host] != "" })
	for _, conflict := range listed {
		delete(own.Trees[conflict.Host], conflict.DeploymentTarget)
		delete(own.Drift.Trees, conflict.Key)
	}
	return &own
}
