package assignment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

const provenLine = "the candidate is proven"

// keepProven returns proven before it is known whether the plan writes anything. It is known only if every outcome has the
// same: Terraform plans again while it applies, and a known value must not change.
func keepProven(r *request, after folder.Trees) types.Dynamic {
	switch {
	case r.model.Candidate.IsNull() || r.before.isNew:
		return types.DynamicNull()
	case r.isCandidateProven(), !r.model.RollbackTo.IsNull(), r.before.isProposed(), hasChanges(after, r.before.trees):
		return r.prior.Proven
	}
	return types.DynamicUnknown()
}

// provenAfter returns the candidate if nothing is left to write or to prove, else the prior value.
func (c *comparison) provenAfter(ctx context.Context, rolledOut types.Bool, isDone bool) types.Dynamic {
	proven := keepProven(&c.request, c.after)
	switch {
	case !proven.IsUnknown() || c.after.Count() != c.after.CountKnown():
		return proven
	case !isDone || !c.before.state.Drift.IsNone() || c.outlook.Identity != delivery.Same:
		return c.prior.Proven
	case !fleet.IsKnown(tfvalue.Plain(c.model.Candidate)) || rolledOut.IsUnknown() || !c.config.evidence.Known:
		return proven
	case rolledOut.ValueBool() && c.isReady(ctx):
		return c.model.Candidate
	}
	return c.prior.Proven
}

func (r *request) isCandidateProven() bool {
	candidate := tfvalue.Plain(r.model.Candidate)
	return fleet.IsKnown(candidate) && !r.prior.Proven.IsNull() && tfvalue.Content(tfvalue.Plain(r.prior.Proven)) == tfvalue.Content(candidate)
}

func hasChanges(after, before folder.Trees) bool {
	for key, tree := range folder.All(after) {
		if tree != "" && tree != before[key.Host][key.DeploymentTarget] {
			return true
		}
	}
	return false
}

// isReady reports whether all clusters are ready, by the evidence of an assignment without a rollout.
func (d *decision) isReady(ctx context.Context) bool {
	if d.config.settings != nil || d.goal == nil || !d.config.evidence.Speaks() {
		return true
	}
	if !d.connection.CanAsk() {
		return false
	}
	in := rollout.StepInput{
		Wanted: d.goal.rendering.Wanted(), Deployed: d.before.state.Trees, Found: d.before.trees, Hosts: d.goal.hosts(),
		Now: d.config.evidence.Time(), Records: map[folder.Key]rollout.Record{},
	}
	for key, tree := range folder.All(in.Wanted) { // without a rollout, no record tells which folders were written last
		in.Records[key] = rollout.Record{Tree: tree, Changed: d.before.private.Changed}
	}
	s := &rolloutStep{d.wanted, d.config}
	var ok bool
	if in.Reports, ok = s.reports(ctx, in); !ok {
		return false
	}
	s.checkEvidence(in)
	return in.IsReady()
}
