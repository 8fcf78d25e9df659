package assignment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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
		d := decideAll(w, w.rollback.Trees(), rollout.RollBack)
		d.outcome.RolledOut = false
		d.formerContents = map[string]gitops.FolderEdits{"": w.rollback}
		d.after = d.outcome.Decisions.Trees(d.before.trees)
		d.constraints = constraintOutcome{saved: d.before.private.Constraints}
		return d, true
	}
	d, ok := decideFleet(ctx, w)
	if ok {
		d.after = d.outcome.Decisions.Trees(d.before.trees)
		d.constraints = checkConstraints(ctx, &d)
	}
	return d, ok
}

func decideAll(w wanted, folders folder.Trees, action rollout.Action) decision {
	return decision{wanted: w, outcome: &rollout.Outcome{
		Decisions: rollout.Decide(folders, action), State: &rollout.StepState{}, RolledOut: true,
	}}
}

func (d *decision) desired() delivery.Desired {
	isAddition := func(key folder.Key) bool { return d.before.private.Rollout.HasAdded(d.renames.Key(key)) } // of an incomplete rollout
	return delivery.Desired{
		Owner: d.owner, State: d.before.known(), Settings: d.settings, Renames: d.renames, Former: d.former, After: d.after,
		Protection: d.protection,
		// Unknown values stop no plan; the apply knows them.
		Unprotected: !fleet.IsKnown(tfvalue.Plain(d.model.Protection)) || d.model.OnDestroy.IsUnknown(),
		Adopt:       d.model.Adopt.ValueBool() || d.model.Adopt.IsUnknown(),
		Replaces:    d.isReplacement,
		Leave:       d.model.keeps(),
		Clusters:    d.clusters,
		Fleet:       rollout.Fleet{IsAddition: isAddition, Workloads: d.workloads()},
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

// wanted is a request with its goal. Its deployment has the present names of hosts and the present places of folders.
type wanted struct {
	request
	// goal is the target of the assignment. With rollback_to it is nil, and rollback has the folders of the commit.
	goal     *fleetGoal
	rollback gitops.FolderEdits
	// former has the names in commits from before this plan.
	former folder.Former
	// renames maps former names of hosts to present ones. movedHosts maps back hosts whose folders this plan moves.
	renames    folder.Renames
	movedHosts map[string]string
	// relocations grow in later steps.
	relocations relocations
}

// fleetGoal is the rendered fleet.
type fleetGoal struct {
	result     *pipeline.Computation
	rendering  *pipeline.Rendering
	gitopsRepo string
	release    string // of the provider
}

// want returns the folders that the owner should have. It returns false if they are not known yet, or after an error.
func want(ctx context.Context, r request) (wanted, bool) {
	if r.model.RollbackTo.IsNull() {
		return wantFleet(ctx, r)
	}
	return wantCommit(ctx, r)
}

func wantFleet(ctx context.Context, r request) (wanted, bool) {
	value, known := fleetvalue.Decode(r.model.Fleet, r.diagnostics)
	if !known || r.diagnostics.HasError() {
		return wanted{}, false
	}
	r.owner.Environment = value.Environment
	result := r.connection.Compute(value, r.diagnostics)
	if result == nil || r.diagnostics.HasError() {
		return wanted{}, false
	}
	w := wanted{request: r, former: r.before.state.Former, renames: result.Fleet.Renames(), relocations: relocations{}}
	w.warnOfFirstNames(result.Fleet)
	if !w.applyRenames() {
		return w, false
	}
	fleetvalue.AddWarnings(w.diagnostics, result.Warnings())
	fleetvalue.AddWarnings(w.diagnostics, pipeline.ConstraintWarnings(value.Constraints))
	label := w.readLabel(ctx)
	if w.before.isNew && label != w.owner.Name && !w.isApply {
		return w, false // the branch has another name in the labels than the configuration
	}
	goal := &fleetGoal{result: result, gitopsRepo: repository.LocationText(w.owner.Location), release: w.connection.Release}
	to := pipeline.Destination{Repo: repository.ForTemplates(w.owner.Location, w.isLocated), Owner: label}
	if goal.rendering = w.before.private.rendering(result, to, goal.release); goal.rendering == nil {
		goal.rendering = result.Render(ctx, to, w.before.trees)
	}
	w.goal = goal
	fleetvalue.AddWarnings(w.diagnostics, goal.rendering.Warnings())
	fleetvalue.AddErrors(w.diagnostics, goal.rendering.Findings)
	if err := w.relocateDeployment(ctx); err != nil {
		repository.AddError(ctx, w.diagnostics, err, false)
		return w, false
	}
	return w, !w.diagnostics.HasError()
}

// readLabel returns the owner's name in the labels of rendered objects: the first one, so that a new name changes no
// folder. For a new assignment, it sets former.
func (w *wanted) readLabel(ctx context.Context) string {
	switch {
	case w.before.private.Label != "":
		return w.before.private.Label
	case !w.before.isNew:
		return w.before.state.Owner.Name
	case w.isLocated && w.connection.CanAsk():
		// The plan reports errors when it looks at the location.
		written, err := w.connection.Delivery.ReadOwner(ctx, w.owner, nil)
		if w.former = written.Former; err == nil && written.Label() != "" {
			return written.Label()
		}
	}
	return w.owner.Name
}

// wantCommit reads the folders of the commit in rollback_to. The fleet may have errors during a rollback.
func wantCommit(ctx context.Context, r request) (wanted, bool) {
	commit := r.model.RollbackTo.ValueString()
	checkRollback(r.model.RollbackTo, r.diagnostics)
	if r.model.RollbackTo.IsUnknown() || !r.isLocated || r.diagnostics.HasError() || !r.connection.CanAsk() {
		return wanted{}, false
	}
	tfvalue.AddWarningf(r.diagnostics, path.Root("rollback_to"), "Assignment is rolled back",
		"The folders of %q are what commit %s has. Changes of the fleet wait until rollback_to is removed.",
		r.model.Name.ValueString(), commit)
	r.owner.Environment = r.before.private.Environment
	w := wanted{request: r, former: r.before.state.Former, relocations: relocations{}}
	var err error
	if w.rollback, err = w.foldersAt(ctx, commit); err != nil {
		repository.AddError(ctx, w.diagnostics, err, w.before.isNew)
		return w, false
	}
	w.renames = w.former.Hosts
	return w, true
}

// version returns the fleet that explains changes. It is empty for a commit.
func (g *fleetGoal) version() *changes.Version {
	if g == nil {
		return &changes.Version{}
	}
	return &changes.Version{
		Fleet: g.result.Fleet, Config: g.result.Value.Config, Manifests: changes.Hashes(g.result.Value.Manifests),
		Schedule: g.result.Schedule, GitopsRepo: g.gitopsRepo, Provider: g.release,
	}
}

func (g *fleetGoal) content(ctx context.Context, key folder.Key, owner string) gitops.FolderEdit {
	i, _ := g.result.AssignmentIndex(key.Host, key.DeploymentTarget)
	record := g.rendering.Record(i)
	record.OwnerLabel = omitDefault(g.rendering.Destination.Owner, owner)
	return gitops.FolderEdit{
		Tree:   g.rendering.Trees[i],
		Files:  func() ([]git.File, error) { return g.rendering.Files(ctx, i) },
		Record: record,
	}
}

func (w *wanted) rolledBackTo() string { return w.model.RollbackTo.ValueString() }
