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

// savedRules is what private state has about the constraints. Rules that hold are not evaluated again while
// neither they nor the rendered folders change.
type savedRules struct {
	Rules map[string]string `json:"rules,omitempty"` // hashes of the rules of the last apply, by name
	Kept  string            `json:"kept,omitempty"`  // fingerprint of what kept all of Rules that are enforced
}

// constraintOutcome is what a plan or an apply has found about the fleet's constraints.
type constraintOutcome struct {
	digests    map[string]string
	difference constraint.Difference
	unknown    bool                // some rules are not known yet
	results    *constraint.Results // of the rules that had to be evaluated
	kept       string              // see savedRules
}

// checkConstraints evaluates the fleet's constraints. A violation of an enforced one is an error, except where the plan
// only removes folders or rolls back, since that may repair the violation.
func (o *operation) checkConstraints(ctx context.Context, applies bool) {
	if o.result == nil {
		return
	}
	entries, unknown, allUnknown := fleetvalue.Constraints(o.model.Fleet, o.diagnostics)
	r := &constraintOutcome{digests: changes.Hashes(entries), unknown: allUnknown || len(unknown) > 0}
	o.ruling = r
	before := savedRules{}
	if o.private != nil {
		before = o.private.Constraints
	}
	if o.private != nil && o.private.Model != "" { // else an import, which is to change nothing
		r.difference = constraint.Compare(before.Rules, r.digests, unknown, allUnknown)
	} else {
		r.difference = constraint.Compare(r.digests, r.digests, unknown, allUnknown)
	}
	if len(entries) == 0 {
		return
	}
	fingerprint := ""
	if o.connection != nil && o.connection.Release != developmentRelease {
		fingerprint = o.result.Fingerprint(o.rendering.Destination, o.connection.Release)
	}
	if fingerprint != "" && before.Kept == fingerprint && o.intent.After.Equal(o.current) {
		maps.DeleteFunc(entries, func(name, _ string) bool { return before.Rules[name] == r.digests[name] })
	}
	results, found := o.result.Constraints(ctx, entries, o.rendering.Destination)
	if fleetvalue.AddErrors(o.diagnostics, found); results == nil {
		return
	}
	r.results = results
	if o.enforce(applies) {
		r.kept = fingerprint
	}
}

// allDecided says that all rules are known and decided, so that the apply will show the same lines.
func (r *constraintOutcome) allDecided() bool {
	return r == nil || !r.unknown && (r.results == nil ||
		!slices.ContainsFunc(r.results.Rules, func(rule constraint.RuleResult) bool { return rule.Undecided > 0 }))
}

// enforce returns false where an enforced rule is violated, or may be.
func (o *operation) enforce(applies bool) bool {
	kept, mends := true, o.onlyRemovesOrRollsBack()
	for i := range o.ruling.results.Rules {
		rule := &o.ruling.results.Rules[i]
		switch {
		case !rule.Enforced():
		case !rule.Holds() && mends:
			kept = false
			once.Warning(o.diagnostics, fleetvalue.Path, "Constraint is violated",
				tfvalue.Sentence(rule.Report())+"\n\nThis plan only removes folders or rolls back, so it is not held.")
		case !rule.Holds():
			kept = false
			once.Error(o.diagnostics, fleetvalue.Path, "Constraint is violated",
				tfvalue.Sentence(rule.Report())+"\n\nNothing is written. Mend what violates it, or set mode = \"inform\" on the constraint. "+
					"To destroy a fleet that violates it, add -refresh=false.")
		case rule.Undecided > 0:
			kept = false
			if applies {
				once.Error(o.diagnostics, fleetvalue.Path, "Constraint cannot be decided", tfvalue.Sentence(rule.Undecidable())+" Nothing was written.")
			}
		}
	}
	return kept
}

// onlyRemovesOrRollsBack says whether all folders that change are removed or rolled back.
func (o *operation) onlyRemovesOrRollsBack() bool {
	if o.known == nil || o.known.Owner.Location != o.intent.Owner.Location || o.known.Drift.IsGone() {
		return false
	}
	changed := false
	for key, decision := range folder.All(o.decisions) {
		had := o.current[key.Host][key.DeploymentTarget]
		switch {
		case decision.Action == rollout.Keep || decision.Tree != "" && decision.Tree == had:
		case decision.Action != rollout.RollBack:
			return false
		default:
			changed = true
		}
	}
	return changed || o.current.Count() > o.intent.After.Count()
}

// constraintLines returns a plan's lines about the constraints that concern these folders; about all constraints where there are none.
func (o *operation) constraintLines(folders []folder.Key) []string {
	if o.ruling == nil {
		return nil
	}
	hosts, targets, keys := map[string]bool{}, map[string]bool{}, map[string]bool{}
	workspaces := map[string]bool{}
	for _, key := range folders {
		hosts[key.Host], targets[key.DeploymentTarget], keys[key.String()] = true, true, true
		if i, ok := o.result.AssignmentIndex(key.Host, key.DeploymentTarget); ok {
			workspaces[o.result.Schedule.Assignments[i].Target.Workload.Workspace] = true
		}
	}
	return o.ruling.difference.Lines(o.ruling.results, func(subject constraint.Subject) bool {
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

// saved returns what private state keeps about the constraints.
func (r *constraintOutcome) saved(before *assignmentPrivate) savedRules {
	if r == nil {
		if before == nil {
			return savedRules{}
		}
		return before.Constraints
	}
	return savedRules{Rules: r.digests, Kept: r.kept}
}
