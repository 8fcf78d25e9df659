package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// applied is the state of an object without drift.
const applied = "applied"

// render parses equal manifests only once.
func (r *request) render(settings agent.Settings, diagnostics *diag.Diagnostics) []agent.StagedObject {
	objects, problems := r.connection.Agents.Render(settings)
	addAgentProblems(diagnostics, problems)
	return objects
}

// rendered returns the objects of a model, with placeholders for its credentials, or nil.
func (r *request) rendered(m *agentModel, shape []string, clusters *connection.Clusters) []agent.StagedObject {
	var ignored diag.Diagnostics
	settings, known := m.settings(placeholders(shape), clusters, &ignored)
	if !known || ignored.HasError() {
		return nil
	}
	return r.render(settings, &ignored)
}

func objectsValue(objects []agent.StagedObject, findings map[string]onboarding.ObjectDrift) types.Map {
	values := make(map[string]string, len(objects))
	for i := range objects {
		name := objects[i].ID().String()
		values[name] = applied
		if finding, found := findings[name]; found {
			values[name] = finding.String()
		}
	}
	return tfvalue.TextMap(values)
}

func (r *request) apply(ctx context.Context, before *agentPrivate) *agentPrivate {
	m := r.model
	secrets := m.secrets(r.diagnostics)
	settings, known := m.settings(secrets, r.clusters(), r.diagnostics)
	waits, missing := r.access()
	switch {
	case missing:
		r.addMissing()
	case waits:
		r.diagnostics.AddAttributeError(path.Root("cluster"), "Cluster is not known",
			"The connection to the cluster is still not known: the provider's clusters depend on something that this apply has not created "+
				"before this resource.")
	case !known:
		r.diagnostics.AddAttributeError(path.Root("cluster"), "Cluster is not known", "A part of the configuration is still not known.")
	}
	if r.diagnostics.HasError() {
		return nil
	}
	objects := r.render(settings, r.diagnostics)
	if r.diagnostics.HasError() {
		return nil
	}
	order := onboarding.Wanted{Objects: objects, Force: m.Force.ValueBool()}
	if before != nil {
		order.Records, order.UID = before.Records, before.UID
	}
	if m.Wait.ValueBool() {
		order.Following = r.following(settings)
	}
	var done onboarding.ApplyResult
	err := r.connect(ctx, remaining(ctx), hiddenIn(secrets, objects), func(ctx context.Context, client *kube.ClusterClient) (err error) {
		done, err = onboarding.Apply(ctx, client, order)
		return err
	})
	if err != nil {
		for _, failure := range onboarding.FailuresOf(err) {
			r.addFailure(withChanges(failure, done.Changes))
		}
		return nil
	}
	r.warnOf(done.Notes)
	after := &agentPrivate{Cluster: m.Cluster.ValueString(), Records: done.Records, UID: done.UID, Shape: shapeOf(secrets)}
	if m.isOnHub() {
		after.Reached = accessOf(r.clusters(), m.Cluster.ValueString())
	}
	m.Found, m.Objects = foundValue(done.Records), objectsValue(objects, nil)
	if m.Changes.IsUnknown() {
		m.Changes = tfvalue.Texts(onboarding.Changes(nil, objects, nil, nil))
	}
	return after
}

func foundValue(records []onboarding.Record) types.List {
	var found []string
	for i := range records {
		if !records[i].Created {
			found = append(found, records[i].ID().String())
		}
	}
	slices.Sort(found)
	return tfvalue.Texts(found)
}

func (r *request) warnOf(notes []string) {
	if len(notes) > 0 {
		tfvalue.AddWarningf(r.diagnostics, path.Root("cluster"), "Objects stay on the cluster",
			"Cluster %q: %s.", r.model.Cluster.ValueString(), wording.List(notes, wording.Named))
	}
}

// tipFor is the time between two reads of a branch during an apply.
const tipFor = 15 * time.Second

func (r *request) following(settings agent.Settings) *onboarding.Following {
	location := settings.Repository
	if repo, known, findings := fleet.DecodeGitopsRepo(tfvalue.Plain(r.model.GitopsRepo)); known && len(findings) == 0 {
		location = repo
	}
	tip, asked := "", time.Time{}
	return &onboarding.Following{
		Location: location,
		Cluster:  settings.Cluster, ClusterType: settings.ClusterType,
		Tip: func(ctx context.Context) (_ string, err error) {
			if time.Since(asked) > tipFor {
				tip, err = r.connection.Delivery.ReadTip(ctx, location)
				asked = time.Now()
			}
			return tip, err
		},
	}
}

// refresh reads the objects and sets the computed attributes, unless the cluster cannot be read.
func (r *request) refresh(ctx context.Context, before *agentPrivate) *agentPrivate {
	m := r.model
	after := *before
	if waits, missing := r.access(); waits || missing || len(before.Records) == 0 {
		return &after
	}
	objects := r.rendered(m, before.Shape, before.Reached.clusters(m.Cluster.ValueString()))
	if objects == nil {
		return &after
	}
	var drift onboarding.Drift
	err := r.connect(ctx, min(lookDeadline, remaining(ctx)), nil, func(ctx context.Context, client *kube.ClusterClient) error {
		look, err := onboarding.Inspect(ctx, client, objects, onboarding.InspectOptions{
			Force: m.Force.ValueBool(), SecretsUnknown: true, Known: before.UID, Records: before.Records,
		})
		if err != nil {
			return err
		}
		drift = onboarding.FindDrift(objects, look)
		r.checkConfinement(ctx, client)
		return nil
	})
	if err != nil {
		r.warnOfAway(err, "The state of the agent of cluster %q keeps what was applied last.")
		return &after
	}
	m.Objects = objectsValue(objects, drift.Findings)
	if drift.UID == before.UID && len(drift.Findings) == 0 {
		drift = onboarding.Drift{} // a refresh without drift does not change the state
	}
	after.Drift = drift
	return &after
}

// remove removes the applied objects. A cluster that the provider no longer names counts as gone. One that cannot be
// reached may still have its credentials: an error unless on_unreachable = "forget".
func (r *request) remove(ctx context.Context, before *agentPrivate) {
	m := r.model
	waits, missing := r.access()
	records := before.Records
	if len(records) == 0 {
		objects := r.rendered(m, before.Shape, before.Reached.clusters(m.Cluster.ValueString()))
		for i := range objects {
			records = append(records, onboarding.RecordOf(&objects[i]))
		}
	}
	switch {
	case missing:
		r.warnForgotten(fmt.Sprintf("The provider's clusters do not name cluster %q any more.", r.targetName()), records)
		return
	case waits && r.forgets():
		r.warnForgotten(fmt.Sprintf("It is not known yet how cluster %q is reached.", r.targetName()), records)
		return
	case waits:
		r.addUnreachable(fmt.Sprintf("It is not known yet how cluster %q is reached.", r.targetName()))
		return
	}
	removal := onboarding.Removal{
		Name:    m.Cluster.ValueString(),
		Records: records,
		UID:     before.UID,
		Delete:  m.OnDestroy.ValueString() == "delete",
	}
	var done onboarding.Removed
	err := r.connect(ctx, remaining(ctx), nil, func(ctx context.Context, client *kube.ClusterClient) (err error) {
		done, err = onboarding.Remove(ctx, client, removal)
		return err
	})
	r.warnOf(done.Notes)
	for _, failure := range onboarding.FailuresOf(err) {
		switch {
		case failure.Cause != onboarding.CauseCluster || len(done.Changes) > 0:
			r.addFailure(withChanges(failure, done.Changes))
		case r.forgets() && (failure.Reason() == kube.ReasonUnreachable || failure.Reason() == kube.ReasonTimeout):
			r.warnForgotten(r.sentence(failure), records)
		default:
			r.addUnreachable(r.sentence(failure))
		}
	}
}

func withChanges(failure *onboarding.Failure, changes []string) *onboarding.Failure {
	if len(changes) == 0 {
		return failure
	}
	more := *failure
	more.Text = fullStop(failure.Text) + " Before that, these changes were made: " + wording.List(changes, allChanges)
	return &more
}

// allChanges bounds the changes in an error; an agent without install has fewer.
const allChanges = 30

func (r *request) forgets() bool { return r.model.OnUnreachable.ValueString() == forgetCluster }

func (r *request) addUnreachable(why string) {
	r.diagnostics.AddAttributeError(r.targetPath(), "Cluster cannot be reached",
		why+" Its agent and the credentials may still be there, so nothing was removed, neither there nor from the state. Try again when "+
			"the cluster can be reached. If it does not exist any more, take it out of the provider's clusters. To give up its agent as it "+
			"is, use `terraform state rm`, or a removed block with destroy = false. For clusters that come and go, apply on_unreachable = "+
			"\"forget\" before the destroy.")
}

// warnForgotten names objects that may remain on the cluster.
func (r *request) warnForgotten(why string, records []onboarding.Record) {
	var left, credentials []string
	for i := range records {
		if id := records[i].ID().String(); records[i].Part == agent.Credential {
			credentials = append(credentials, id)
		} else {
			left = append(left, id)
		}
	}
	text := why + " Its agent is removed from the state, and nothing was removed from the cluster."
	if all := slices.Concat(credentials, left); len(all) > 0 {
		text += fmt.Sprintf(" If the cluster still exists, it goes on following its folders, and these objects are left there: %s.",
			wording.List(all, wording.Named))
	}
	if len(credentials) > 0 {
		text += " Revoke the credentials in " + wording.List(credentials, wording.Named) + "."
	}
	r.diagnostics.AddAttributeWarning(r.targetPath(), "Cluster is given up", text)
}
