package assignment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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
	if failed, _ := d.outcome.Split(); len(failed.Progress) > 0 { // in every plan, because the plan that halts is soon forgotten
		d.diagnostics.AddAttributeWarning(path.Root("rollout"), "Rollout has failed", wording.Lines(failed.Lines(), changes.MaxLines))
	}
	if d.goal != nil {
		warnOfUnknownHosts(&d)
		warnOfNewName(d.goal, d.before.trees, d.diagnostics)
	}
	c := compare(ctx, d)
	if c.isLocated && !c.isReplacement { // not in the second plan of a replacement
		repository.AddProblems(c.diagnostics, c.connection.Delivery.RegisterPlan(ctx, c.desired(), c.outlook))
	}
	if !c.diagnostics.HasError() {
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

// applyRequest repeats the steps of the plan, writes the decision, and returns the new private state. The returned error is
// in the diagnostics.
func applyRequest(ctx context.Context, r request) (*assignmentPrivate, error) {
	if err := r.connection.Delivery.CheckBaseBranch(ctx, r.settings, r.owner, r.before.known()); err != nil && r.isLocated {
		repository.AddError(ctx, r.diagnostics, err, false)
		return nil, nil
	}
	var lines []string
	d, ready := decideAgain(ctx, r, func(d *decision) {
		c := compare(ctx, *d)
		lines = describe(ctx, &c).lines
	})
	if !ready || r.diagnostics.HasError() || !d.checkWindows() {
		return nil, nil
	}
	return write(ctx, &d, lines)
}

// decideAgain repeats the steps up to the decision, without warnings. It calls describe if the plan did not know the
// changes.
func decideAgain(ctx context.Context, r request, describe func(*decision)) (d decision, ready bool) {
	out, quiet := r.diagnostics, diag.Diagnostics{}
	r.diagnostics, r.isApply = &quiet, true
	defer func() { out.Append(quiet.Errors()...) }()
	if !r.isLocated {
		return d, false
	}
	if d, ready = decideRequest(ctx, r); !ready {
		return d, false
	}
	if r.model.Changes.IsUnknown() {
		describe(&d)
	}
	d.diagnostics = out
	return d, true
}

// saveProgress applies a plan that writes nothing to the repository. The progress of the rollout and the constraints go
// into the private state; nil if there is none.
func saveProgress(ctx context.Context, r request, before *assignmentPrivate) *assignmentPrivate {
	d, ready := decideAgain(ctx, r, func(d *decision) { // constraints were not known yet
		d.model.Changes = d.planUnwritten(ctx, d.prior.Changes)
	})
	if !ready || before == nil {
		return nil
	}
	m := *d.before.private
	m.Trees = d.before.recorded.Trees // nothing moves
	m.Constraints = d.constraints.saved
	m.Rollout = d.outcome.State
	if d.goal != nil && !d.isUnderWay() {
		m.noteFleet(d.goal)
	}
	return &m
}

func write(ctx context.Context, d *decision, lines []string) (*assignmentPrivate, error) {
	d.connection.Delivery.MarkWriting()
	done, err := d.connection.Delivery.Apply(ctx, delivery.ApplyRequest{
		Desired: d.desired(), Decisions: d.outcome.Decisions,
		Contents: func(host, target string) gitops.FolderEdit {
			return d.content(ctx, folder.Key{Host: host, DeploymentTarget: target})
		},
		Subject: d.model.CommitMessage.ValueString(),
		Verify:  render.CheckPointers,
		Source:  decodeSource(d.model.Source, d.diagnostics),
	})
	if err != nil {
		repository.AddError(ctx, d.diagnostics, err, false)
		d.model.PullRequest = types.StringPointerValue(wording.OrNil(done.PullRequest))
		return nil, err
	}
	repository.AddProblems(d.diagnostics, done.Problems)
	if !d.before.isNew && (done.Identity != delivery.Moved || done.FormerGone) { // else a request there may clear the old location
		head, err := d.connection.Delivery.CloseFormerRequest(ctx, d.before.saved, d.owner, d.settings)
		if err != nil {
			tfvalue.AddWarningf(d.diagnostics, path.Root("delivery"), "A former pull request may still be open",
				"everything is delivered, but the former pull request from branch %q could not be closed: %s. Close it by hand",
				head, err)
		}
	}
	m := d.model
	m.Content = contentValue(d.after)
	if m.RolledOut.IsUnknown() {
		m.setProgress(d.outcome)
	}
	m.Commit, m.PullRequest = types.StringValue(done.Commit), types.StringPointerValue(wording.OrNil(done.PullRequest))
	if m.Changes.IsUnknown() {
		m.Changes = tfvalue.Texts(lines)
	}
	return privateAfter(ctx, d, done), nil
}

func privateAfter(ctx context.Context, d *decision, done delivery.ApplyOutcome) *assignmentPrivate {
	before := d.before.private
	m := &assignmentPrivate{
		Environment: d.owner.Environment, Rollout: d.outcome.State, Changed: done.Time, Constraints: d.constraints.saved,
		SavedState: delivery.SavedState{
			Label:    before.Label,
			Trees:    d.after,
			Records:  done.Records,
			Holder:   done.Holder,
			Replaced: done.Replaced,
			Proposed: done.Proposed,
			Former:   done.Former,
		},
	}
	if m.Changed.IsZero() {
		m.Changed = before.Changed
	}
	d.noteTip(ctx, m, done)
	if d.goal != nil {
		m.Label = omitDefault(d.goal.rendering.Destination.Owner, d.owner.Name)
		if before.Model != "" && d.isUnderWay() {
			m.keepFleet(before)
		} else {
			m.noteFleet(d.goal)
		}
		m.noteRendering(d.goal.rendering, d.goal.release)
	}
	return m
}

// noteTip notes the commit and the records for a rollout, as the next refresh would.
func (d *decision) noteTip(ctx context.Context, m *assignmentPrivate, done delivery.ApplyOutcome) {
	m.Tip = done.Commit
	if d.settings.PullRequest {
		m.Tip = d.before.private.Tip
	}
	if !d.isStaged || !m.needsRecords() && !m.Proposed {
		return
	}
	written, err := d.connection.Delivery.ReadOwner(ctx, d.owner, nil)
	if err != nil {
		return // the next refresh reads them
	}
	if d.settings.PullRequest {
		m.Tip = written.Tip
	}
	m.noteWritten(written.Records)
}

func omitDefault(text, usual string) string {
	if text == usual {
		return ""
	}
	return text
}
