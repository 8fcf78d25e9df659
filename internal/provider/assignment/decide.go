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
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// decision has the action for each folder.
type decision struct {
	wanted
	config   rolloutConfig
	isStaged bool             // by a rollout or holds; else all folders change at once
	outcome  *rollout.Outcome // never nil
	// formerContents has the folders that go back, by commit; "" with rollback_to.
	formerContents map[string]gitops.FolderEdits
	after          folder.Trees // after the apply
	constraints    constraintOutcome
}

// decide decides which folders change now. It returns false if that is not known yet, or after an error.
func decide(ctx context.Context, w wanted) (decision, bool) {
	if w.goal == nil {
		return decideRollback(w), true
	}
	d, ok := decideFleet(ctx, w)
	if ok {
		d.after = d.outcome.Decisions.Trees(d.before.trees)
		d.constraints = checkConstraints(ctx, &d)
	}
	return d, ok
}

func decideRollback(w wanted) decision {
	d := decideAll(w, w.rollback.Trees(), rollout.RollBack)
	d.outcome.RolledOut = false
	d.formerContents = map[string]gitops.FolderEdits{"": w.rollback}
	d.after = d.outcome.Decisions.Trees(d.before.trees)
	d.constraints = constraintOutcome{saved: d.before.private.Constraints}
	return d
}

func decideAll(w wanted, folders folder.Trees, action rollout.Action) decision {
	return decision{wanted: w, outcome: &rollout.Outcome{
		Decisions: rollout.Decide(folders, action), State: &rollout.StepState{}, RolledOut: true,
	}}
}

func (d *decision) desired() delivery.Desired {
	return delivery.Desired{
		Owner: d.owner, State: d.before.known(), Settings: d.settings, Renames: d.renames, Former: d.former, After: d.after,
		Protection: d.protection,
		// Unknown values stop no plan; the apply knows them.
		Unprotected: !fleet.IsKnown(tfvalue.Plain(d.model.Protection)) || d.model.OnDestroy.IsUnknown(),
		Adopt:       d.model.Adopt.ValueBool() || d.model.Adopt.IsUnknown(),
		Replaces:    d.isReplacement,
		Leave:       d.model.keeps(),
		Clusters:    d.clusters,
		Fleet:       rollout.Fleet{IsAddition: d.isAddition, Workloads: d.workloads()},
		Causes:      d.removalCauses,
	}
}

func (d *decision) clusters(hosts []string) []string {
	switch before := d.before.private.fleet(); {
	case before != nil:
		return pipeline.ClustersOf(before, hosts)
	case d.goal == nil:
		return pipeline.ClustersOf(nil, hosts)
	}
	return pipeline.ClustersOf(d.goal.result.Fleet, hosts)
}

func (d *decision) workloads() map[string]string {
	if d.goal == nil {
		return nil
	}
	workloads := map[string]string{}
	for workload, target := range d.goal.result.Fleet.Targets() {
		workloads[fleet.FullName(workload.Name, target.Name)] = workload.Name
	}
	return workloads
}

// isAddition reports whether an incomplete rollout added a folder.
func (d *decision) isAddition(key folder.Key) bool {
	return d.before.private.Rollout.HasAdded(d.renames.Key(key))
}

func (d *decision) removalCauses(removed []folder.Key) []string {
	notes := changes.Notes{RolledBack: d.rolledBackTo()}
	if notes.RolledBack == "" && d.before.private.fleet() == nil {
		return nil
	}
	folders := make([]changes.FolderChange, len(removed))
	for i, key := range removed {
		key = d.renames.Key(key)
		folders[i] = changes.FolderChange{Key: key, Removed: true, Back: d.rollsBackTo(key)}
	}
	after := d.goal.version()
	return changes.English(changes.Removals(d.before.private.version(after.Fleet), after, folders, notes))
}

// rollsBackTo returns the commit that the rollout restores in a folder; "" leaves the folder.
func (d *decision) rollsBackTo(key folder.Key) string {
	if target := d.outcome.State.Targets[key.DeploymentTarget]; target != nil && target.Failed && target.Hosts[key.Host] != nil {
		return target.Hosts[key.Host].From
	}
	return ""
}

// isUnderWay reports whether changes wait. Later changes are then compared with the fleet that was rolled out last.
func (d *decision) isUnderWay() bool { return len(d.outcome.Progress) > 0 }

func (m *assignmentModel) setProgress(outcome *rollout.Outcome) {
	if outcome.Undecided {
		m.forgetProgress()
		return
	}
	m.RollingOut, m.RolledOut = repository.RollingOut.MapOf(outcome.RollingOut()), types.BoolValue(outcome.RolledOut)
	m.Progress = types.StringValue(rollout.MarshalProgress(outcome.Progress))
}

func (m *assignmentModel) forgetProgress() {
	m.RollingOut, m.RolledOut = types.MapUnknown(repository.RollingOut.Type()), types.BoolUnknown()
	m.Progress = types.StringUnknown()
}

func (m *assignmentModel) hasProgressOf(other *assignmentModel) bool {
	return m.RollingOut.Equal(other.RollingOut) && m.RolledOut.Equal(other.RolledOut) && m.Progress.Equal(other.Progress)
}

// warnOfFailure warns of failures in every plan, because the plan that halts is soon forgotten.
func warnOfFailure(outcome *rollout.Outcome, diagnostics *diag.Diagnostics) {
	if failed, _ := outcome.Split(); len(failed.Progress) > 0 {
		diagnostics.AddAttributeWarning(path.Root("rollout"), "Rollout has failed", wording.Lines(failed.Lines(), changes.MaxLines))
	}
}

// checkWindows refuses to write if a window has closed since the plan. No other part of a rollout reads a clock.
func (d *decision) checkWindows() bool {
	if gate.Open(d.connection.Now(), d.outcome.Windowed...) {
		return true
	}
	tfvalue.AddErrorf(d.diagnostics, path.Root("rollout"), "Windows have closed",
		"The plan was made while changes could be written; now they wait for %s. Nothing was written: plan again.",
		gate.WaitText(d.connection.Now(), d.outcome.Windowed...))
	return false
}

func (d *decision) content(ctx context.Context, key folder.Key) gitops.FolderEdit {
	decided := d.outcome.Decisions[key.Host][key.DeploymentTarget]
	switch {
	case decided.Action == rollout.Keep:
		return d.kept(key)
	case decided.Action == rollout.RollBack, d.goal == nil:
		return d.formerContents[decided.From][key.Host][key.DeploymentTarget]
	}
	return d.goal.content(ctx, key, d.owner.Name)
}
