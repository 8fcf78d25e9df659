package assignment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// apply writes what is wanted, sets the computed attributes, and returns the new private state. The error of the delivery is
// among the diagnostics, too.
func (t *task) apply(ctx context.Context) (*assignmentPrivate, error) {
	if t.connection == nil {
		t.diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is written.")
		return nil, nil
	}
	out, quiet := t.diagnostics, diag.Diagnostics{} // the plan has given the warnings
	t.diagnostics, t.applies = &quiet, true
	ready := t.locationKnown && t.want(ctx)
	var lines []string
	if ready {
		t.intent.After = t.decisions.Trees(t.current)
		t.checkConstraints(ctx, true)
		if t.model.Changes.IsUnknown() {
			t.lookAhead(ctx)
			lines, _ = t.describe(ctx)
		}
	}
	t.diagnostics = out
	if out.Append(quiet.Errors()...); !ready || out.HasError() {
		return nil, nil
	}
	if !t.checkWindows() {
		return nil, nil
	}
	return t.deliver(ctx, lines)
}

// keepProgress is an apply that writes nothing to the repository. It only keeps the progress of the rollout and the rules.
func (t *task) keepProgress(ctx context.Context) *assignmentPrivate {
	out, quiet := t.diagnostics, diag.Diagnostics{}
	t.diagnostics, t.applies = &quiet, true
	ready := t.locationKnown && t.want(ctx)
	if ready {
		t.intent.After = t.decisions.Trees(t.current)
		t.checkConstraints(ctx, true)
		if t.model.Changes.IsUnknown() { // rules that were not known yet
			t.model.Changes = t.prior.Changes
			t.addOtherLines()
		}
	}
	t.diagnostics = out
	if out.Append(quiet.Errors()...); !ready || t.private == nil {
		return nil
	}
	m := *t.private
	m.Constraints = t.ruling.remember(t.private)
	if m.Rollout = t.state(); t.result != nil && !t.isUnderWay() {
		m.remember(t.result, repository.LocationText(t.intent.Owner.Location), t.connection.Release)
	}
	return &m
}

// deliver writes the folders, and closes requests that another kind of delivery has left.
func (t *task) deliver(ctx context.Context, lines []string) (*assignmentPrivate, error) {
	t.connection.Delivery.Writes()
	done, err := t.connection.Delivery.Apply(ctx, delivery.Order{
		Intent: t.intent, Decisions: t.decisions, Contents: t.contents, Subject: t.model.CommitMessage.ValueString(),
	})
	if err != nil {
		repository.AddError(ctx, t.diagnostics, err, false)
		return nil, err
	}
	repository.AddProblems(t.diagnostics, done.Problems)
	if t.known != nil && done.Identity != delivery.Moved { // else a request there may clear the old location
		head, err := t.connection.Delivery.CloseFormer(ctx, t.known, t.intent.Owner, t.intent.Settings)
		if err != nil {
			t.diagnostics.AddAttributeWarning(path.Root("delivery"), "A former pull request may still be open", tfvalue.Sentence(fmt.Sprintf(
				"everything is delivered, but the former pull request from branch %q could not be closed: %s. Close it by hand", head, err)))
		}
	}
	t.model.Content = contentValue(t.intent.After)
	if t.model.RolledOut.IsUnknown() {
		t.setProgress()
	}
	t.model.Commit, t.model.PullRequest = types.StringValue(done.Commit), types.StringPointerValue(wording.OrNil(done.PullRequest))
	if t.model.Changes.IsUnknown() {
		t.model.Changes = tfvalue.Texts(lines)
	}
	m := &assignmentPrivate{Environment: t.intent.Owner.Environment, Trees: t.intent.After, Records: done.Records, Holder: done.Holder, Rollout: t.state()}
	m.Replaced, m.Proposed = textKeys(done.Replaced), done.Proposed
	m.Changed = done.Time
	m.Constraints = t.ruling.remember(t.private)
	if t.private != nil {
		m.Label = t.private.Label
		if m.Changed.IsZero() {
			m.Changed = t.private.Changed
		}
	}
	t.noteTip(ctx, m, done)
	if t.result != nil {
		m.Label = otherThan(t.rendering.Destination.Owner, t.intent.Owner.Name)
		if t.private != nil && t.private.Model != "" && t.isUnderWay() {
			m.keepFleet(t.private)
		} else {
			m.remember(t.result, repository.LocationText(t.intent.Owner.Location), t.connection.Release)
		}
		m.noteRendering(t.rendering, t.connection)
	}
	return m, nil
}

// noteTip keeps where the folders are as they were written, and what a rollout needs of their records, as the next
// refresh would find it.
func (t *task) noteTip(ctx context.Context, m *assignmentPrivate, done delivery.Done) {
	if !t.intent.Settings.PullRequest {
		m.Tip = done.Commit
	} else if t.private != nil {
		m.Tip = t.private.Tip
	}
	if t.outcome == nil || !m.needsRecords() && !m.Proposed {
		return
	}
	written, err := t.connection.Delivery.Written(ctx, t.intent.Owner, nil)
	if err != nil {
		return // the next refresh reads them
	}
	if t.intent.Settings.PullRequest {
		m.Tip = written.Tip
	}
	m.noteWritten(written.Records)
}

// contents returns the files and the record of a folder that is written.
func (t *task) contents(host, target string) gitops.Folder {
	if t.backTo != nil {
		return t.backTo[host].Folders[target]
	}
	if decision := t.decisions[host][target]; decision.Action == rollout.RollBack {
		return t.rollbackContents[decision.From][host].Folders[target]
	}
	i, _ := t.result.Assignment(host, target)
	record := t.rendering.Record(i)
	return gitops.Folder{
		Tree:  t.rendering.Trees[i],
		Files: func() ([]git.File, error) { return t.rendering.Files(i) },
		Record: gitops.Record{
			Workload: record.Workload, Workspace: record.Workspace, DeploymentTarget: record.DeploymentTarget,
			ClusterType: record.ClusterType, Policies: record.Policies, ConfigVersion: record.ConfigVersion,
			OwnerLabel: otherThan(t.rendering.Destination.Owner, t.intent.Owner.Name),
			Objects:    objectsOf(record.Objects),
		},
	}
}

func objectsOf(rendered []render.Object) []gitops.Object {
	objects := make([]gitops.Object, len(rendered))
	for i, object := range rendered {
		objects[i] = gitops.Object(object)
	}
	return objects
}

// otherThan returns a text, or "" where it is the default.
func otherThan(text, usual string) string {
	if text == usual {
		return ""
	}
	return text
}
