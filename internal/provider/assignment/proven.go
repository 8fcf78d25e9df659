package assignment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// provenLine is the line of changes for a plan in which the candidate becomes proven.
const provenLine = "the candidate is proven"

// keepProven sets proven while it is not known whether this plan writes anything. The value is known only where every
// outcome has the same: Terraform plans again while it applies, when more is known, and a known value must not change.
func (t *task) keepProven() {
	t.model.Proven = types.DynamicUnknown()
	switch {
	case t.model.Candidate.IsNull() || t.known == nil:
		t.model.Proven = types.DynamicNull()
	case t.isCandidateProven(), !t.model.RollbackTo.IsNull(), t.isProposed(), t.writes():
		t.model.Proven = t.prior.Proven
	}
}

// setProven sets proven in a plan that knows everything: the candidate, where nothing is left to write or to prove; else
// what the state has. done says that this plan writes nothing.
func (t *task) setProven(ctx context.Context, done bool) {
	t.keepProven()
	if !t.model.Proven.IsUnknown() || t.intent.After.Count() != t.intent.After.CountKnown() {
		return
	}
	if !done || !t.known.Drift.IsNone() || t.outlook.Identity != delivery.Same {
		t.model.Proven = t.prior.Proven
		return
	}
	if !fleet.IsKnown(tfvalue.Plain(t.model.Candidate)) || t.model.RolledOut.IsUnknown() || t.model.Evidence.IsUnknown() {
		return
	}
	t.model.Proven = t.prior.Proven
	if t.model.RolledOut.ValueBool() && t.isReady(ctx) {
		t.model.Proven = t.model.Candidate
	}
}

// isCandidateProven says whether the candidate is the one that is proven already.
func (t *task) isCandidateProven() bool {
	candidate := tfvalue.Plain(t.model.Candidate)
	return fleet.IsKnown(candidate) && !t.prior.Proven.IsNull() && tfvalue.Content(tfvalue.Plain(t.prior.Proven)) == tfvalue.Content(candidate)
}

// isProposed says whether what was written is in an open pull request, by the refreshed state.
func (t *task) isProposed() bool { return t.private != nil && t.private.Proposed }

// writes says whether this plan writes something, whatever becomes known later.
func (t *task) writes() bool {
	if t.intent.After == nil {
		return false
	}
	for _, key := range t.intent.After.Keys() {
		tree, now := t.intent.After[key.Host][key.DeploymentTarget], t.current[key.Host][key.DeploymentTarget]
		if tree != "" && tree != now {
			return true
		}
	}
	return false
}

// isReady says whether all clusters are ready, by the evidence of an assignment without a rollout: with one, rolled_out
// says so.
func (t *task) isReady(ctx context.Context) bool {
	evidence := t.steps.evidence
	if evidence == nil || t.steps.settings != nil || len(evidence.Clusters) == 0 || t.rendering == nil {
		return true
	}
	if !t.connection.CanAsk() {
		return false
	}
	in := rollout.Input{Wanted: t.rendering.Wanted(), Hosts: t.hosts(), Now: evidence.Time}
	var ok bool
	if in.Reports, ok = t.reports(ctx, evidence, in); !ok {
		return false
	}
	t.checkEvidence(in)
	return in.IsReady()
}
