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

// provenLine is the line of changes for a plan in which the candidate becomes proven.
const provenLine = "the candidate is proven"

// keepProven sets proven while it is not known whether this plan writes anything. The value is known only where every
// outcome has the same: Terraform plans again while it applies, when more is known, and a known value must not change.
func (o *operation) keepProven() {
	o.model.Proven = types.DynamicUnknown()
	switch {
	case o.model.Candidate.IsNull() || o.known == nil:
		o.model.Proven = types.DynamicNull()
	case o.isCandidateProven(), !o.model.RollbackTo.IsNull(), o.isProposed(), o.writes():
		o.model.Proven = o.prior.Proven
	}
}

// setProven sets proven in a plan that knows everything: the candidate, where nothing is left to write or to prove; else
// what the state has. done says that this plan writes nothing.
func (o *operation) setProven(ctx context.Context, done bool) {
	o.keepProven()
	if !o.model.Proven.IsUnknown() || o.intent.After.Count() != o.intent.After.CountKnown() {
		return
	}
	if !done || !o.known.Drift.IsNone() || o.outlook.Identity != delivery.Same {
		o.model.Proven = o.prior.Proven
		return
	}
	if !fleet.IsKnown(tfvalue.Plain(o.model.Candidate)) || o.model.RolledOut.IsUnknown() || !o.steps.evidence.Known {
		return
	}
	o.model.Proven = o.prior.Proven
	if o.model.RolledOut.ValueBool() && o.isReady(ctx) {
		o.model.Proven = o.model.Candidate
	}
}

// isCandidateProven says whether the candidate is the one that is proven already.
func (o *operation) isCandidateProven() bool {
	candidate := tfvalue.Plain(o.model.Candidate)
	return fleet.IsKnown(candidate) && !o.prior.Proven.IsNull() && tfvalue.Content(tfvalue.Plain(o.prior.Proven)) == tfvalue.Content(candidate)
}

// isProposed says whether what was written is in an open pull request, by the refreshed state.
func (o *operation) isProposed() bool { return o.private != nil && o.private.Proposed }

// writes says whether this plan writes something, whatever becomes known later.
func (o *operation) writes() bool {
	if o.intent.After == nil {
		return false
	}
	for _, key := range o.intent.After.Keys() {
		tree, now := o.intent.After[key.Host][key.DeploymentTarget], o.current[key.Host][key.DeploymentTarget]
		if tree != "" && tree != now {
			return true
		}
	}
	return false
}

// isReady says whether all clusters are ready, by the evidence of an assignment without a rollout: with one, rolled_out
// says so.
func (o *operation) isReady(ctx context.Context) bool {
	if o.steps.settings != nil || o.rendering == nil || !o.steps.evidence.Speaks() {
		return true
	}
	if !o.connection.CanAsk() {
		return false
	}
	in := rollout.Input{
		Wanted: o.rendering.Wanted(), Deployed: o.known.Trees, Found: o.current, Hosts: o.hosts(), Now: o.steps.evidence.Time(),
		Records: map[folder.Key]rollout.Record{},
	}
	if o.private != nil {
		for key, tree := range folder.All(in.Wanted) { // which of them were written last is not kept without a rollout
			in.Records[key] = rollout.Record{Tree: tree, Changed: o.private.Changed}
		}
	}
	var ok bool
	if in.Reports, ok = o.reports(ctx, in); !ok {
		return false
	}
	o.checkEvidence(in)
	return in.IsReady()
}
