package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
	r.diagnostics.AddAttributeError(
		r.targetPath(),
		"Cluster cannot be reached",
		why+" Its agent and the credentials may still be there, so nothing was removed, neither there nor from the state. Try again when "+
			"the cluster can be reached. If it does not exist any more, take it out of the provider's clusters. To give up its agent as it "+
			"is, use `terraform state rm`, or a removed block with destroy = false. For clusters that come and go, apply on_unreachable = "+
			"\"forget\" before the destroy.",
	)
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
		text += fmt.Sprintf(
			" If the cluster still exists, it goes on following its folders, and these objects are left there: %s.",
			wording.List(all, wording.Named),
		)
	}
	if len(credentials) > 0 {
		text += " Revoke the credentials in " + wording.List(credentials, wording.Named) + "."
	}
	r.diagnostics.AddAttributeWarning(r.targetPath(), "Cluster is given up", text)
}
