package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// task is one plan or one apply of an assignment: the configuration, what is known, and what is computed. Plan and
// apply run the same steps.
type task struct {
	connection    *connection
	model         *assignmentModel // what the plan wants; its computed attributes are set
	prior         *assignmentModel // from state
	memory        *memory          // from private state; nil where there is none
	known         *delivery.Known  // nil where the assignment is created
	intent        delivery.Intent
	locationKnown bool
	replaces      bool // Terraform plans a replacement without its state, after it has done so with it
	diagnostics   *diag.Diagnostics

	result    *pipeline.Result    // nil while the fleet is not known, and with rollback_to
	rendering *pipeline.Rendering // likewise
	backTo    map[string]gitops.Host
	decisions rollout.Decisions
	current   rollout.Trees // what the owner has, as far as the state knows
	outlook   *delivery.Outlook

	steps            rolloutConfig
	outcome          *rollout.Outcome                  // nil where nothing is to wait for anything
	rollbackContents map[string]map[string]gitops.Host // by commit: what the commits have that the rollout rolls back to
	ruling           *constraintOutcome                // nil with rollback_to
}

func (r *assignmentResource) task(
	_ context.Context, model, prior *assignmentModel, m *memory, exists bool, diagnostics *diag.Diagnostics,
) *task {
	t := &task{connection: r.connection, model: model, prior: prior, memory: m, diagnostics: diagnostics, current: rollout.Trees{}}
	var location delivery.Location
	location, t.locationKnown = model.location(diagnostics)
	t.locationKnown = t.locationKnown && !model.Name.IsUnknown()
	t.intent = delivery.Intent{
		Owner:      delivery.Owner{Location: location, Name: model.Name.ValueString()},
		Settings:   decodeDelivery(model.Delivery, diagnostics),
		Protection: decodeProtection(model.Protection, diagnostics),
		Adopt:      model.Adopt.ValueBool(), Leave: model.keeps(),
		Clusters: t.clusters,
	}
	if exists {
		t.known, _ = r.known(prior, m, diagnostics)
		t.intent.Known = t.known
		t.current = t.known.Current()
	}
	return t
}

// clusters returns the names of the clusters that follow hosts, by the fleets before and after.
func (t *task) clusters(hosts []string) []string {
	if t.memory != nil && t.memory.Model != "" {
		if before, err := fleet.ParseModel(t.memory.Model); err == nil {
			return pipeline.ClustersOf(before, hosts)
		}
	}
	if t.result != nil {
		return t.result.ClustersOf(hosts)
	}
	return pipeline.ClustersOf(nil, hosts)
}

// want computes what the owner should have: the rendered fleet, or what the commit has that it rolls back to. It
// returns false while that is not known yet, or after an error.
func (t *task) want(ctx context.Context) bool {
	if !t.model.RollbackTo.IsNull() {
		return t.wantRollback(ctx)
	}
	value, known := decodeFleet(t.model.Fleet, t.diagnostics)
	if !known || t.diagnostics.HasError() {
		return false
	}
	t.intent.Owner.Environment = value.Environment
	t.result = t.connection.compute(value, t.diagnostics)
	if t.result == nil || t.diagnostics.HasError() {
		return false
	}
	addWarnings(t.diagnostics, t.result.Warnings())
	addWarnings(t.diagnostics, pipeline.ConstraintWarnings(value.Constraints))
	to := pipeline.Destination{Repo: repoOf(t.intent.Owner.Location, t.locationKnown), Owner: t.label(ctx)}
	if t.rendering = t.memory.rendering(t.result, to, t.connection); t.rendering == nil {
		t.rendering = t.result.Render(to, t.current)
	}
	addErrors(t.diagnostics, t.rendering.Findings)
	return !t.diagnostics.HasError() && t.decideRollout(ctx)
}

// label is the owner's name in the labels of rendered objects: the name with which it was first written, so that a new
// name changes no folder.
func (t *task) label(ctx context.Context) string {
	switch {
	case t.memory != nil && t.memory.Label != "":
		return t.memory.Label
	case t.known != nil:
		return t.known.Owner.Name
	case t.locationKnown && t.connection.canAsk():
		// The plan reports errors when it looks at the location.
		if label, err := t.connection.delivery.Label(ctx, t.intent.Owner); err == nil && label != "" {
			return label
		}
	}
	return t.intent.Owner.Name
}

// wantRollback is want with rollback_to. It does not use the fleet: a rollback must be possible while the fleet has
// errors.
func (t *task) wantRollback(ctx context.Context) bool {
	commit := t.model.RollbackTo.ValueString()
	checkRollback(t.model.RollbackTo, t.diagnostics)
	if t.model.RollbackTo.IsUnknown() || !t.locationKnown || t.diagnostics.HasError() || !t.connection.canAsk() {
		return false
	}
	t.diagnostics.AddAttributeWarning(path.Root("rollback_to"), "Assignment is rolled back",
		fmt.Sprintf("The folders of %q are what commit %s has. Changes of the fleet wait until rollback_to is removed.", t.model.Name.ValueString(), commit))
	if t.memory != nil {
		t.intent.Owner.Environment = t.memory.Environment
	}
	owner := t.intent.Owner
	if t.known != nil {
		owner.Name = t.known.Owner.Name // the commit has the owner's former name
	}
	hosts, err := t.connection.delivery.AsOf(ctx, owner, commit)
	if err != nil {
		addRepositoryError(ctx, t.diagnostics, err, t.known == nil)
		return false
	}
	t.backTo, t.decisions = hosts, rollout.Decide(nil, treesOf(hosts))
	return true
}

// plan sets the computed attributes.
func (t *task) plan(ctx context.Context) {
	t.model.Deployed, t.model.Commit = types.MapUnknown(types.StringType), types.StringUnknown()
	t.model.Changes, t.model.PullRequest = types.ListUnknown(types.StringType), types.StringNull()
	t.model.RollingOut, t.model.RolledOut = types.MapUnknown(types.StringType), types.BoolUnknown()
	if t.intent.Settings.PullRequest {
		t.model.PullRequest = types.StringUnknown()
	}
	t.keepSpelling()
	if t.locationKnown {
		t.check()
	}
	if t.diagnostics.HasError() || !t.want(ctx) {
		return
	}
	t.intent.After = t.decisions.Trees(t.current)
	t.checkConstraints(ctx, false)
	if t.lookAhead(ctx); t.diagnostics.HasError() {
		return
	}
	t.model.Deployed = deployedValue(t.intent.After)
	t.setProgress()
	if t.isDone(ctx) {
		t.model.Deployed, t.model.Commit, t.model.Changes = t.prior.Deployed, t.prior.Commit, t.prior.Changes
		t.addOtherLines()
		if t.intent.Settings.PullRequest {
			t.model.PullRequest = t.prior.PullRequest
		}
		t.takeOver()
		return
	}
	lines, complete := t.describe(ctx)
	complete = complete && t.ruling.allDecided()
	switch {
	case t.diagnostics.HasError():
	case complete:
		t.model.Changes = linesValue(lines)
	default:
		t.diagnostics.AddAttributeWarning(path.Root("changes"), "Changes that are known so far", wording.Lines(lines, changes.MaxLines))
	}
}

// addOtherLines plans an update where no folder changes, but the progress of a rollout or a rule does.
func (t *task) addOtherLines() {
	var lines []string
	rollout := !t.isProgressInState() && t.outcome != nil
	if rollout {
		lines = t.outcome.Lines()
	}
	rules := t.ruling != nil && !t.ruling.difference.None()
	if rules {
		lines = append(lines, changes.LimitLines(t.constraintLines(nil))...)
	}
	switch {
	case !t.ruling.allDecided():
		t.model.Changes = types.ListUnknown(types.StringType)
	case rollout || rules:
		t.model.Changes = linesValue(lines)
	}
}

// takeOver plans an update that writes nothing, where an interrupted replacement has left a deposed object of this
// assignment in the state. Terraform destroys that object after the update, and the folders stay, since this process
// has planned them.
func (t *task) takeOver() {
	if t.connection == nil || !t.connection.delivery.HasAnother(t.known.Owner) {
		return
	}
	t.model.Commit = types.StringUnknown()
	t.diagnostics.AddAttributeWarning(path.Root("name"), "A replacement was interrupted", fmt.Sprintf(
		"The state has another object of the assignment %q. It is removed from the state, and the folders stay.", t.known.Owner.Name))
}

// keepSpelling keeps the location of the state where the configuration has another spelling of the same location, so
// that nothing changes.
func (t *task) keepSpelling() {
	if t.known == nil || !t.locationKnown || t.known.Owner.Location != t.intent.Owner.Location {
		return
	}
	t.model.GitopsRepo = t.prior.GitopsRepo
}

// check finds errors without reading the repository.
func (t *task) check() {
	if t.connection == nil {
		return
	}
	if err := t.connection.delivery.Check(t.intent.Settings, t.intent.Owner); err != nil && fleet.IsKnown(plain(t.model.Delivery)) {
		t.diagnostics.AddAttributeError(path.Root("delivery"), "Invalid delivery", sentence(err.Error()))
	}
	if t.replaces { // the same resource has been planned with its state
		return
	}
	if err := t.connection.delivery.Planned(t.intent.Owner); err != nil {
		t.diagnostics.AddAttributeError(path.Root("name"), "Two assignments have the same name", sentence(err.Error()))
	}
}

// lookAhead finds at plan what would make the apply fail, and checks the protection.
func (t *task) lookAhead(ctx context.Context) {
	if !t.locationKnown || !t.connection.canAsk() {
		t.outlook = delivery.Unseen(t.intent)
		addProblems(t.diagnostics, t.outlook.Problems)
		return
	}
	outlook, err := t.connection.delivery.Plan(ctx, t.intent)
	if err != nil {
		addRepositoryError(ctx, t.diagnostics, err, t.known == nil)
		t.outlook = delivery.Unseen(t.intent)
		return
	}
	t.outlook = outlook
	addProblems(t.diagnostics, outlook.Problems)
}

// isDone says whether the repository has everything as it is wanted, so that there is nothing to write.
func (t *task) isDone(ctx context.Context) bool {
	if t.known != nil && t.isClosed() && t.outlook.Identity == delivery.Same {
		if !t.known.Drift.IsNone() {
			t.diagnostics.AddAttributeWarning(path.Root("rollout"), "Drift waits for a window", fmt.Sprintf(
				"The folders of %q are not as they were written. A repair is a change, too, and waits for %s.",
				t.known.Owner.Name, t.steps.settings.Windows.Waits(t.steps.evidence.Time)))
		}
		return true
	}
	if t.known == nil || t.outlook.Identity != delivery.Same || !t.known.Drift.IsNone() || !t.model.Deployed.Equal(t.prior.Deployed) {
		return false
	}
	if t.model.Delivery.Equal(t.prior.Delivery) || t.prior.PullRequest.IsNull() {
		return true
	}
	// An open request must be updated after a change of delivery, even where nothing else changes.
	if !t.connection.canAsk() {
		return false
	}
	proposed, err := t.connection.delivery.IsProposed(ctx, t.known)
	if err != nil {
		addRepositoryError(ctx, t.diagnostics, err, false)
	}
	return !proposed
}

// apply writes what is wanted, sets the computed attributes, and returns the new memory. The error of the delivery is
// among the diagnostics, too.
func (t *task) apply(ctx context.Context) (*memory, error) {
	if t.connection == nil {
		t.diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is written.")
		return nil, nil
	}
	out, quiet := t.diagnostics, diag.Diagnostics{} // the plan has given the warnings
	t.diagnostics = &quiet
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
func (t *task) keepProgress(ctx context.Context) *memory {
	out, quiet := t.diagnostics, diag.Diagnostics{}
	t.diagnostics = &quiet
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
	if out.Append(quiet.Errors()...); !ready || t.memory == nil {
		return nil
	}
	m := *t.memory
	m.Constraints = t.ruling.remember(t.memory)
	if m.Rollout = t.state(); t.result != nil && !t.isUnderWay() {
		m.remember(t.result, locationText(t.intent.Owner.Location), t.connection.release)
	}
	return &m
}

// deliver writes the folders, and closes requests that another kind of delivery has left.
func (t *task) deliver(ctx context.Context, lines []string) (*memory, error) {
	done, err := t.connection.delivery.Apply(ctx, delivery.Order{
		Intent: t.intent, Decisions: t.decisions, Contents: t.contents, Subject: t.model.CommitMessage.ValueString(),
	})
	if err != nil {
		addRepositoryError(ctx, t.diagnostics, err, false)
		return nil, err
	}
	addProblems(t.diagnostics, done.Problems)
	if t.known != nil && done.Identity != delivery.Moved { // else a request there may clear the old location
		head, err := t.connection.delivery.CloseFormer(ctx, t.known, t.intent.Owner, t.intent.Settings)
		if err != nil {
			t.diagnostics.AddAttributeWarning(path.Root("delivery"), "A former pull request may still be open", sentence(fmt.Sprintf(
				"everything is delivered, but the former pull request from branch %q could not be closed: %s. Close it by hand", head, err)))
		}
	}
	t.model.Deployed = deployedValue(t.intent.After)
	if t.model.RolledOut.IsUnknown() {
		t.setProgress()
	}
	t.model.Commit, t.model.PullRequest = types.StringValue(done.Commit), types.StringPointerValue(orNil(done.PullRequest))
	if t.model.Changes.IsUnknown() {
		t.model.Changes = linesValue(lines)
	}
	m := &memory{Environment: t.intent.Owner.Environment, Trees: t.intent.After, Records: done.Records, Rollout: t.state()}
	m.Constraints = t.ruling.remember(t.memory)
	if t.memory != nil {
		m.Label = t.memory.Label
	}
	if t.result != nil {
		m.Label = otherThan(t.rendering.Destination.Owner, t.intent.Owner.Name)
		if t.memory != nil && t.memory.Model != "" && t.isUnderWay() {
			m.recallFleet(t.memory)
		} else {
			m.remember(t.result, locationText(t.intent.Owner.Location), t.connection.release)
		}
		m.noteRendering(t.rendering, t.connection)
	}
	return m, nil
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

// planDestroy checks a destroy against the protection in the state, unless all folders stay.
func (r *assignmentResource) planDestroy(ctx context.Context, state *assignmentModel, m *memory, diagnostics *diag.Diagnostics) {
	known, ok := r.known(state, m, diagnostics)
	if !ok || r.connection == nil || r.connection.delivery.PlansDeposed(known.Owner) {
		return
	}
	r.connection.delivery.PlansEnd(known.Owner)
	if known.Trees == nil && r.connection.canAsk() {
		if err := r.connection.delivery.Refresh(ctx, known); err != nil {
			addRepositoryError(ctx, diagnostics, err, false)
			return
		}
	}
	t := &task{memory: m}
	outlook := r.connection.delivery.PlanDestroy(ctx, known, decodeProtection(state.Protection, diagnostics), state.keeps(), t.clusters)
	for i := range outlook.Problems {
		if problem := &outlook.Problems[i]; !problem.Warning {
			problem.Detail += "\n\nAn object that an interrupted replacement has left deposed is in no configuration: \"terraform state rm\" " +
				"removes it from the state, and \"terraform import\" imports the assignment again."
		}
	}
	addProblems(diagnostics, outlook.Problems)
}

// known returns what the state has of an assignment; false where its location cannot be read.
func (r *assignmentResource) known(state *assignmentModel, m *memory, diagnostics *diag.Diagnostics) (*delivery.Known, bool) {
	location, ok := state.location(diagnostics)
	known := &delivery.Known{
		Owner:    delivery.Owner{Location: location, Name: state.Name.ValueString()},
		Settings: decodeDelivery(state.Delivery, diagnostics), PullRequest: state.PullRequest.ValueString(),
	}
	if m != nil {
		known.Owner.Environment = m.Environment
		known.Trees, known.Records, known.Drift = m.Trees, m.Records, m.drift()
	}
	return known, ok && r.connection != nil
}

// linesValue is the attribute changes.
func linesValue(lines []string) types.List {
	values := make([]attr.Value, len(lines))
	for i, line := range lines {
		values[i] = types.StringValue(line)
	}
	return types.ListValueMust(types.StringType, values)
}
