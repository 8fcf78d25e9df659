package assignment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

func planRequest(ctx context.Context, r request) {
	setUnknown(&r)
	if r.checkWithoutLook(); r.diagnostics.HasError() {
		return
	}
	d, ok := decideRequest(ctx, r)
	if !ok {
		return
	}
	warnOfFailure(d.outcome, d.diagnostics)
	if d.goal != nil {
		warnOfUnknownHosts(&d)
		warnOfNewName(d.goal, d.before.trees, d.diagnostics)
	}
	c := compare(ctx, d)
	if c.checkOtherPlans(ctx); !c.diagnostics.HasError() {
		setComputed(ctx, &c)
	}
}

// decideRequest has the steps that plan and apply share. It returns false if something is not known yet, or after an error.
func decideRequest(ctx context.Context, r request) (decision, bool) {
	w, ok := want(ctx, r)
	if !ok {
		return decision{}, false
	}
	return decide(ctx, w)
}

// setUnknown sets the computed attributes before the changes are known.
func setUnknown(r *request) {
	m := r.model
	m.Content, m.Commit = types.StringUnknown(), types.StringUnknown()
	m.Changes, m.PullRequest = types.ListUnknown(types.StringType), types.StringNull()
	m.forgetProgress()
	if r.settings.PullRequest {
		m.PullRequest = types.StringUnknown()
	}
	m.Proven = keepProven(r, nil)
	// Another spelling of the same location changes nothing.
	if !r.before.isNew && r.isLocated && !r.before.isRelocated && r.before.state.Owner.Location == r.owner.Location {
		m.GitopsRepo = r.prior.GitopsRepo
	}
}

func (r *request) checkWithoutLook() {
	if r.before.isRelocated {
		tfvalue.AddWarningf(r.diagnostics, path.Root("gitops_repo"), "Branch has another name now",
			"Nothing is at the former location of %q any more, and branch %q at %s has the records of this assignment: it is the same location. "+
				"No folder moves because of that. With render = \"objects\", objects that name the branch change with it.",
			r.before.state.Owner.Name, r.owner.Location.Branch, r.owner.Location.URL)
	}
	if !r.isLocated {
		return
	}
	if err := r.connection.Delivery.CheckSettings(r.settings, r.owner); err != nil && fleet.IsKnown(tfvalue.Plain(r.model.Delivery)) {
		r.diagnostics.AddAttributeError(path.Root("delivery"), "Invalid delivery", tfvalue.Sentence(err.Error()))
	}
	if r.isReplacement { // the same object has been planned with its state
		return
	}
	if err := r.connection.Delivery.RegisterOwner(r.owner); err != nil {
		r.diagnostics.AddAttributeError(path.Root("name"), "Two assignments have the same name", tfvalue.Sentence(err.Error()))
	}
}

func setComputed(ctx context.Context, c *comparison) {
	m := c.model
	m.Content = contentValue(c.after)
	m.setProgress(c.outcome)
	isDone := c.isDone(m.Content)
	m.Proven = c.provenAfter(ctx, m.RolledOut, isDone)
	if isDone {
		m.Content, m.Commit, m.Changes = c.prior.Content, c.prior.Commit, c.planUnwritten(ctx, c.prior.Changes)
		if c.settings.PullRequest {
			m.PullRequest = c.prior.PullRequest
		}
		return
	}
	c.warnOfImport()
	described := describe(ctx, c)
	c.warnOfDeparture()
	switch {
	case c.diagnostics.HasError():
	case described.isComplete && c.constraints.areDecided():
		m.Changes = tfvalue.Texts(described.lines)
	default:
		c.diagnostics.AddAttributeWarning(path.Root("changes"), "Changes that are known so far", wording.Lines(described.lines, changes.MaxLines))
	}
}

// planUnwritten returns the changes of a plan that writes nothing: progress, constraints, and objects that change by
// themselves, or else unchanged.
func (d *decision) planUnwritten(ctx context.Context, unchanged types.List) types.List {
	m := d.model
	var lines []string
	hasProgress := d.isStaged && !m.hasProgressOf(&d.prior)
	if hasProgress {
		lines = d.outcome.Lines()
	} else if _, others := d.outcome.Split(); len(others.Progress) > 0 {
		d.diagnostics.AddAttributeWarning(path.Root("rollout"), "Rollout waits", wording.Lines(others.Lines(), changes.MaxLines))
	}
	isProven := !m.Proven.IsUnknown() && !m.Proven.Equal(d.prior.Proven) && !m.Proven.IsNull()
	if isProven {
		lines = append(lines, provenLine)
	}
	hasRules := !d.constraints.difference.None()
	if hasRules {
		lines = append(lines, changes.LimitLines(d.constraintLines(nil))...)
	}
	upgrades, isCertain := d.upgradeLines(ctx)
	lines = append(lines, upgrades...)
	switch {
	case !d.constraints.areDecided(), m.Proven.IsUnknown(), !isCertain:
		return types.ListUnknown(types.StringType)
	case hasProgress || hasRules || isProven || len(upgrades) > 0:
		return tfvalue.Texts(lines)
	}
	return unchanged
}
