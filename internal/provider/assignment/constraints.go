package assignment

import (
	"context"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// savedRules are the constraints of the last apply in private state. Those that hold are evaluated again when they or the
// folders change.
type savedRules struct {
	Rules map[string]string `json:"rules,omitempty"` // hashes of the rules, by name
	Kept  string            `json:"kept,omitempty"`  // of the rendering that kept all enforced Rules
}

// constraintOutcome is the result of the fleet's constraints. With rollback_to, it has only saved.
type constraintOutcome struct {
	difference constraint.Difference
	unknown    bool
	results    constraint.Results // of the rules that had to be evaluated
	saved      savedRules
}

// checkConstraints evaluates the fleet's constraints. A violation is a warning if the plan only removes folders or rolls
// back, because that may repair it.
func checkConstraints(ctx context.Context, d *decision) constraintOutcome {
	entries, unknown, allUnknown := fleetvalue.Constraints(d.model.Fleet, d.diagnostics)
	before, digests := d.before.private.Constraints, changes.Hashes(entries)
	outcome := constraintOutcome{unknown: allUnknown || len(unknown) > 0, saved: savedRules{Rules: digests}}
	if d.before.private.Model != "" {
		outcome.difference = constraint.Compare(before.Rules, digests, unknown, allUnknown)
	} else { // an import, which is to change nothing
		outcome.difference = constraint.Compare(digests, digests, unknown, allUnknown)
	}
	if len(entries) == 0 {
		return outcome
	}
	fingerprint := ""
	if d.connection.Release != developmentRelease {
		fingerprint = d.goal.result.Fingerprint(d.goal.rendering.Destination, d.connection.Release)
	}
	if fingerprint != "" && before.Kept == fingerprint && d.after.Equal(d.before.trees) {
		maps.DeleteFunc(entries, func(name, _ string) bool { return before.Rules[name] == digests[name] })
	}
	results, found := d.goal.result.Constraints(ctx, entries, d.goal.rendering.Destination)
	if fleetvalue.AddErrors(d.diagnostics, found); results == nil {
		return outcome
	}
	outcome.results = *results
	if enforce(results, d) {
		outcome.saved.Kept = fingerprint
	}
	return outcome
}

// areDecided reports whether the apply will have the same results.
func (o *constraintOutcome) areDecided() bool {
	return !o.unknown && !slices.ContainsFunc(o.results.Rules, func(rule constraint.RuleResult) bool { return rule.Undecided > 0 })
}

// enforce reports whether all enforced constraints hold.
func enforce(results *constraint.Results, d *decision) bool {
	kept, mends := true, d.onlyRemovesOrRollsBack()
	for i := range results.Rules {
		rule := &results.Rules[i]
		switch {
		case !rule.Enforced():
		case !rule.Holds() && mends:
			kept = false
			once.Warning(d.diagnostics, fleetvalue.Path, "Constraint is violated",
				tfvalue.Sentence(rule.Report())+"\n\nThis plan only removes folders or rolls back, so it is not held.")
		case !rule.Holds():
			kept = false
			once.Error(d.diagnostics, fleetvalue.Path, "Constraint is violated",
				tfvalue.Sentence(rule.Report())+"\n\nNothing is written. Mend what violates it, or set mode = \"inform\" on the constraint. "+
					"To destroy a fleet that violates it, add -refresh=false.")
		case rule.Undecided > 0:
			kept = false
			if d.isApply {
				once.Error(d.diagnostics, fleetvalue.Path, "Constraint cannot be decided", tfvalue.Sentence(rule.Undecidable())+" Nothing was written.")
			}
		}
	}
	return kept
}

func (d *decision) onlyRemovesOrRollsBack() bool {
	if d.before.isNew || d.before.state.Owner.Location != d.owner.Location || d.before.state.Drift.IsGone() {
		return false
	}
	changed := false
	for key, decided := range folder.All(d.outcome.Decisions) {
		had := d.before.trees[key.Host][key.DeploymentTarget]
		switch {
		case decided.Action == rollout.Keep || decided.Tree != "" && decided.Tree == had:
		case decided.Action != rollout.RollBack:
			return false
		default:
			changed = true
		}
	}
	return changed || d.before.trees.Count() > d.after.Count()
}

// constraintLines returns the lines about constraints that concern the folders, or about all changed ones.
func (d *decision) constraintLines(folders []folder.Key) []string {
	if d.goal == nil {
		return nil
	}
	hosts, targets, keys := map[string]bool{}, map[string]bool{}, map[string]bool{}
	workspaces := map[string]bool{}
	for _, key := range folders {
		hosts[key.Host], targets[key.DeploymentTarget], keys[key.String()] = true, true, true
		if i, ok := d.goal.result.AssignmentIndex(key.Host, key.DeploymentTarget); ok {
			workspaces[d.goal.result.Schedule.Assignments[i].Target.Workload.Workspace] = true
		}
	}
	return d.constraints.difference.Lines(&d.constraints.results, func(subject constraint.Subject) bool {
		switch {
		case subject.Assignment != "":
			return keys[subject.Assignment]
		case subject.DeploymentTarget != "":
			return targets[subject.DeploymentTarget]
		case subject.Host != "":
			return hosts[subject.Host]
		}
		return workspaces[subject.Workspace]
	})
}
