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
	maps.DeleteFunc(own.Drift.Trees, func(key folder.Key, _ string) bool { return held[key.Host] })
	for _, conflict := range listed {
		delete(own.Trees[conflict.Host], conflict.DeploymentTarget)
		delete(own.Drift.Trees, conflict.Key)
	}
	return &own
}

// checkProtection reports removals that protection refuses.
func checkProtection(desired Desired, after folder.Trees, plan Plan) []PlanProblem {
	if desired.Unprotected {
		return nil
	}
	removal := rollout.RemovalOf(plan.folders(), after, desired.Fleet)
	problems := checkRemoval(desired.Protection, removal, desired.Clusters, func(removed []folder.Key) []string {
		return findCauses(desired, plan.Before, removed)
	})
	if plan.Cleared == nil {
		return problems
	}
	// Each location counts on its own.
	clearance := rollout.ClearanceOf(plan.Cleared, after)
	return append(problems, checkRemoval(desired.Protection, clearance, desired.Clusters, func([]folder.Key) []string {
		was, is := desired.State.Owner.Location, desired.Owner.Location
		return []string{fmt.Sprintf("gitops_repo is now branch %q at path %q of %s, and was branch %q at path %q of %s",
			is.Branch, is.Path, is.URL, was.Branch, was.Path, was.URL)}
	})...)
}

func findCauses(desired Desired, before folder.Trees, removed []folder.Key) []string {
	var known []folder.Key
	for _, key := range removed {
		if before.Has(key.Host, key.DeploymentTarget) {
			known = append(known, key)
		}
	}
	var lines []string
	if len(known) > 0 && desired.Causes != nil {
		lines = desired.Causes(known)
	}
	if found := len(removed) - len(known); found > 0 {
		lines = append(lines, fmt.Sprintf(
			"%s of %q that this state does not know, and that the fleet does not want: an earlier state was lost, or another one writes there",
			wording.Count(found, "folder", "folders"), desired.Owner.Name))
	}
	return lines
}

func checkRemoval(
	protection rollout.Protection, removal rollout.Removal, clusters func(hosts []string) []string, causes func(removed []folder.Key) []string,
) []PlanProblem {
	var names []string
	if clusters != nil {
		names = clusters(removal.Hosts())
	}
	refusal := protection.Check(removal, names)
	if refusal == nil {
		return nil
	}
	lines := causes(removal.Keys)
	if len(lines) == 0 {
		lines = []string{"not known: the state has no fleet to compare with"}
	}
	return []PlanProblem{newError("protection", refusal.Summary, "%s\n\nThe cause:\n%s\n\n%s",
		refusal.Detail, wording.Lines(lines, mostListed), refusal.Remedy)}
}
