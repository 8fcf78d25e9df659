package delivery

import (
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
