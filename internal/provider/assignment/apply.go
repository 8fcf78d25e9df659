package assignment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// apply writes what is wanted, sets the computed attributes, and returns the new private state. The error of the delivery is
// among the diagnostics, too.
func (o *operation) apply(ctx context.Context) (*assignmentPrivate, error) {
	if o.connection == nil {
		o.diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is written.")
		return nil, nil
	}
	if err := o.connection.Delivery.CheckBaseBranch(ctx, o.intent.Settings, o.intent.Owner, o.known); err != nil && o.locationKnown {
		repository.AddError(ctx, o.diagnostics, err, false)
		return nil, nil
	}
	var lines []string
	ready := o.wantAgain(ctx, func() {
		o.lookAhead(ctx)
		lines, _ = o.describe(ctx)
	})
	if !ready || o.diagnostics.HasError() || !o.checkWindows() {
		return nil, nil
	}
	return o.deliver(ctx, lines)
}

// wantAgain computes what the plan has, whose warnings are not repeated. describe says what changes where the plan did not know it.
func (o *operation) wantAgain(ctx context.Context, describe func()) (ready bool) {
	out, quiet := o.diagnostics, diag.Diagnostics{}
	o.diagnostics, o.applies = &quiet, true
	if ready = o.locationKnown && o.want(ctx); ready {
		o.intent.After, o.intent.Fleet.Workloads = o.decisions.Trees(o.current), o.workloads()
		if o.checkConstraints(ctx, true); o.model.Changes.IsUnknown() {
			describe()
		}
	}
	o.diagnostics = out
	out.Append(quiet.Errors()...)
	return ready
}

// keepProgress is an apply that writes nothing to the repository. It only keeps the progress of the rollout and the rules.
func (o *operation) keepProgress(ctx context.Context) *assignmentPrivate {
	ready := o.wantAgain(ctx, func() { // rules were not known yet
		o.model.Changes = o.prior.Changes
		o.addOtherLines(ctx)
	})
	if !ready || o.private == nil {
		return nil
	}
	m := *o.private
	if o.intent.State != nil { // nothing moves
		m.Trees = o.intent.State.Trees
	}
	m.Constraints = o.ruling.saved(o.private)
	if m.Rollout = o.state(); o.result != nil && !o.isUnderWay() {
		m.noteFleet(o.result, repository.LocationText(o.intent.Owner.Location), o.connection.Release)
	}
	return &m
}

// deliver writes the folders, and closes requests that another kind of delivery has left.
func (o *operation) deliver(ctx context.Context, lines []string) (*assignmentPrivate, error) {
	o.connection.Delivery.MarkWriting()
	done, err := o.connection.Delivery.Apply(ctx, delivery.ApplyRequest{
		Desired: o.intent, Decisions: o.decisions, Contents: func(host, target string) gitops.FolderEdit { return o.contents(ctx, host, target) }, Subject: o.model.CommitMessage.ValueString(),
		Verify: render.CheckPointers,
		Source: decodeSource(o.model.Source, o.diagnostics),
	})
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, false)
		o.model.PullRequest = types.StringPointerValue(wording.OrNil(done.PullRequest))
		return nil, err
	}
	repository.AddProblems(o.diagnostics, done.Problems)
	if o.known != nil && (done.Identity != delivery.Moved || done.FormerGone) { // else a request there may clear the old location
		head, err := o.connection.Delivery.CloseFormerRequest(ctx, o.inState, o.intent.Owner, o.intent.Settings)
		if err != nil {
			o.diagnostics.AddAttributeWarning(path.Root("delivery"), "A former pull request may still be open", tfvalue.Sentence(fmt.Sprintf(
				"everything is delivered, but the former pull request from branch %q could not be closed: %s. Close it by hand", head, err)))
		}
	}
	o.model.Content = contentValue(o.intent.After)
	if o.model.RolledOut.IsUnknown() {
		o.setProgress()
	}
	o.model.Commit, o.model.PullRequest = types.StringValue(done.Commit), types.StringPointerValue(wording.OrNil(done.PullRequest))
	if o.model.Changes.IsUnknown() {
		o.model.Changes = tfvalue.Texts(lines)
	}
	m := &assignmentPrivate{
		Environment: o.intent.Owner.Environment, Rollout: o.state(), Changed: done.Time, Constraints: o.ruling.saved(o.private),
		SavedState: delivery.SavedState{
			Trees:    o.intent.After,
			Records:  done.Records,
			Holder:   done.Holder,
			Replaced: done.Replaced,
			Proposed: done.Proposed,
			Former:   done.Former,
		},
	}
	if o.private != nil {
		m.Label = o.private.Label
		if m.Changed.IsZero() {
			m.Changed = o.private.Changed
		}
	}
	o.noteTip(ctx, m, done)
	if o.result != nil {
		m.Label = otherThan(o.rendering.Destination.Owner, o.intent.Owner.Name)
		if o.private != nil && o.private.Model != "" && o.isUnderWay() {
			m.keepFleet(o.private)
		} else {
			m.noteFleet(o.result, repository.LocationText(o.intent.Owner.Location), o.connection.Release)
		}
		m.noteRendering(o.rendering, o.connection)
	}
	return m, nil
}

// noteTip keeps where the folders are as they were written, and what a rollout needs of their records, as the next
// refresh would find it.
func (o *operation) noteTip(ctx context.Context, m *assignmentPrivate, done delivery.ApplyOutcome) {
	if !o.intent.Settings.PullRequest {
		m.Tip = done.Commit
	} else if o.private != nil {
		m.Tip = o.private.Tip
	}
	if o.outcome == nil || !m.needsRecords() && !m.Proposed {
		return
	}
	written, err := o.connection.Delivery.ReadOwner(ctx, o.intent.Owner, nil)
	if err != nil {
		return // the next refresh reads them
	}
	if o.intent.Settings.PullRequest {
		m.Tip = written.Tip
	}
	m.noteWritten(written.Records)
}

// contents returns the files and the record of a folder that is written.
func (o *operation) contents(ctx context.Context, host, target string) gitops.FolderEdit {
	switch o.decisions[host][target].Action {
	case rollout.Keep:
		return o.kept(folder.Key{Host: host, DeploymentTarget: target})
	case rollout.RollBack:
		return o.formerContents(host, target)
	}
	i, _ := o.result.AssignmentIndex(host, target)
	record := o.rendering.Record(i)
	record.OwnerLabel = otherThan(o.rendering.Destination.Owner, o.intent.Owner.Name)
	return gitops.FolderEdit{
		Tree:   o.rendering.Trees[i],
		Files:  func() ([]git.File, error) { return o.rendering.Files(ctx, i) },
		Record: record,
	}
}

// formerContents returns the files and the record of a folder that goes back.
func (o *operation) formerContents(host, target string) gitops.FolderEdit {
	if o.backTo != nil {
		return o.backTo[host][target]
	}
	return o.rollbackContents[o.decisions[host][target].From][host][target]
}

// otherThan returns a text, or "" where it is the default.
func otherThan(text, usual string) string {
	if text == usual {
		return ""
	}
	return text
}
