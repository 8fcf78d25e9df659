package assignment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// task is one plan or one apply of an assignment: the configuration, what is known, and what is computed. Plan and
// apply run the same steps.
type task struct {
	connection    *connection.Connection
	model         *assignmentModel   // what the plan wants; its computed attributes are set
	prior         *assignmentModel   // from state
	private       *assignmentPrivate // from private state; nil where there is none
	known         *delivery.Known    // nil where the assignment is created
	intent        delivery.Intent
	locationKnown bool
	applies       bool // what is planned is written
	relabelled    bool // there is no state, and the branch has another name in the labels than the configuration
	replaces      bool // Terraform plans a replacement without its state, after it has done so with it
	relocated     bool // somebody has renamed the branch or the repository, and the configuration has the new name
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
	ctx context.Context, model, prior *assignmentModel, m *assignmentPrivate, exists bool, diagnostics *diag.Diagnostics,
) *task {
	t := &task{connection: r.connection, model: model, prior: prior, private: m, diagnostics: diagnostics, current: rollout.Trees{}}
	var location delivery.Location
	location, t.locationKnown = model.location(diagnostics)
	t.locationKnown = t.locationKnown && !model.Name.IsUnknown()
	t.intent = delivery.Intent{
		Owner:      delivery.Owner{Location: location, Name: model.Name.ValueString()},
		Settings:   decodeDelivery(model.Delivery, diagnostics),
		Protection: decodeProtection(model.Protection, diagnostics),
		// What is not known yet stops no plan; the apply knows it.
		Unprotected: !fleet.IsKnown(tfvalue.Plain(model.Protection)) || model.OnDestroy.IsUnknown(),
		Adopt:       model.Adopt.ValueBool() || model.Adopt.IsUnknown(), Leave: model.keeps(),
		Clusters: t.clusters,
	}
	if exists {
		t.known, _ = r.known(prior, m, diagnostics)
		t.relocate(ctx)
		t.intent.Known = t.known
		t.current = t.known.Current()
	}
	return t
}

// relocate takes what the state knows to be at the location of the configuration, where that is the same location by another
// name.
func (t *task) relocate(ctx context.Context) {
	if !t.locationKnown || t.known == nil || !t.connection.CanAsk() {
		return
	}
	relocated := t.connection.Delivery.Relocated(ctx, t.known, t.intent.Owner.Location)
	if relocated == nil {
		return
	}
	t.known, t.relocated = relocated, true
	t.private = t.private.refreshed(relocated)
	t.prior.Content = contentValue(relocated.Current())
}

// clusters returns the names of the clusters that follow hosts, by the fleets before and after.
func (t *task) clusters(hosts []string) []string {
	if t.private != nil && t.private.Model != "" {
		if before, err := fleet.ParseModel(t.private.Model); err == nil {
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
	value, known := fleetvalue.Decode(t.model.Fleet, t.diagnostics)
	if !known || t.diagnostics.HasError() {
		return false
	}
	t.intent.Owner.Environment = value.Environment
	t.result = t.connection.Compute(value, t.diagnostics)
	if t.result == nil || t.diagnostics.HasError() {
		return false
	}
	fleetvalue.AddWarnings(t.diagnostics, t.result.Warnings())
	fleetvalue.AddWarnings(t.diagnostics, pipeline.ConstraintWarnings(value.Constraints))
	label := t.label(ctx)
	if t.relabelled && !t.applies {
		return false
	}
	to := pipeline.Destination{Repo: repository.ForTemplates(t.intent.Owner.Location, t.locationKnown), Owner: label}
	if t.rendering = t.private.rendering(t.result, to, t.connection); t.rendering == nil {
		t.rendering = t.result.Render(to, t.current)
	}
	fleetvalue.AddErrors(t.diagnostics, t.rendering.Findings)
	return !t.diagnostics.HasError() && t.decideRollout(ctx)
}

// label is the owner's name in the labels of rendered objects: the name with which it was first written, so that a new
// name changes no folder.
func (t *task) label(ctx context.Context) string {
	switch {
	case t.private != nil && t.private.Label != "":
		return t.private.Label
	case t.known != nil:
		return t.known.Owner.Name
	case t.locationKnown && t.connection.CanAsk():
		// The plan reports errors when it looks at the location.
		if label, err := t.connection.Delivery.Label(ctx, t.intent.Owner); err == nil && label != "" {
			t.relabelled = label != t.intent.Owner.Name
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
	if t.model.RollbackTo.IsUnknown() || !t.locationKnown || t.diagnostics.HasError() || !t.connection.CanAsk() {
		return false
	}
	t.diagnostics.AddAttributeWarning(path.Root("rollback_to"), "Assignment is rolled back",
		fmt.Sprintf("The folders of %q are what commit %s has. Changes of the fleet wait until rollback_to is removed.", t.model.Name.ValueString(), commit))
	if t.private != nil {
		t.intent.Owner.Environment = t.private.Environment
	}
	owner := t.intent.Owner
	if t.known != nil {
		owner.Name = t.known.Owner.Name // the commit has the owner's former name
	}
	hosts, err := t.connection.Delivery.AsOf(ctx, owner, commit)
	if err != nil {
		repository.AddError(ctx, t.diagnostics, err, t.known == nil)
		return false
	}
	t.backTo, t.decisions = hosts, rollout.Decide(nil, treesOf(hosts))
	return true
}

// plan sets the computed attributes.
func (t *task) plan(ctx context.Context) {
	t.model.Content, t.model.Commit = types.StringUnknown(), types.StringUnknown()
	t.model.Changes, t.model.PullRequest = types.ListUnknown(types.StringType), types.StringNull()
	t.model.RollingOut, t.model.RolledOut = types.MapUnknown(types.StringType), types.BoolUnknown()
	if t.intent.Settings.PullRequest {
		t.model.PullRequest = types.StringUnknown()
	}
	t.keepProven()
	t.keepSpelling()
	if t.relocated {
		t.diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Branch has another name now", fmt.Sprintf(
			"Nothing is at the former location of %q any more, and branch %q at %s has the records of this assignment: it is the same location. "+
				"No folder changes because of that.", t.known.Owner.Name, t.intent.Owner.Location.Branch, t.intent.Owner.Location.URL))
	}
	if t.locationKnown {
		t.check()
	}
	if t.diagnostics.HasError() || !t.want(ctx) {
		return
	}
	t.intent.After = t.decisions.Trees(t.current)
	t.checkEmptied()
	t.checkConstraints(ctx, false)
	if t.lookAhead(ctx); t.connection != nil && t.locationKnown && !t.replaces {
		repository.AddProblems(t.diagnostics, t.connection.Delivery.PlannedFolders(ctx, t.intent, t.outlook))
	}
	if t.diagnostics.HasError() {
		return
	}
	t.model.Content = contentValue(t.intent.After)
	t.setProgress()
	done := t.isDone()
	t.setProven(ctx, done)
	if done {
		t.model.Content, t.model.Commit, t.model.Changes = t.prior.Content, t.prior.Commit, t.prior.Changes
		t.addOtherLines()
		if t.intent.Settings.PullRequest {
			t.model.PullRequest = t.prior.PullRequest
		}
		return
	}
	lines, complete := t.describe(ctx)
	complete = complete && t.ruling.allDecided()
	t.warnOfDeparture()
	switch {
	case t.diagnostics.HasError():
	case complete:
		t.model.Changes = tfvalue.Texts(lines)
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
	proven := !t.model.Proven.IsUnknown() && !t.model.Proven.Equal(t.prior.Proven) && !t.model.Proven.IsNull()
	if proven {
		lines = append(lines, provenLine)
	}
	rules := t.ruling != nil && !t.ruling.difference.None()
	if rules {
		lines = append(lines, changes.LimitLines(t.constraintLines(nil))...)
	}
	switch {
	case !t.ruling.allDecided(), t.model.Proven.IsUnknown():
		t.model.Changes = types.ListUnknown(types.StringType)
	case rollout || rules || proven:
		t.model.Changes = tfvalue.Texts(lines)
	}
}

// keepSpelling keeps the location of the state where the configuration has another spelling of the same location, so
// that nothing changes.
func (t *task) keepSpelling() {
	if t.known == nil || !t.locationKnown || t.relocated || t.known.Owner.Location != t.intent.Owner.Location {
		return
	}
	t.model.GitopsRepo = t.prior.GitopsRepo
}

// check finds errors without reading the repository.
func (t *task) check() {
	if t.connection == nil {
		return
	}
	if err := t.connection.Delivery.Check(t.intent.Settings, t.intent.Owner); err != nil && fleet.IsKnown(tfvalue.Plain(t.model.Delivery)) {
		t.diagnostics.AddAttributeError(path.Root("delivery"), "Invalid delivery", tfvalue.Sentence(err.Error()))
	}
	if t.replaces { // the same resource has been planned with its state
		return
	}
	if err := t.connection.Delivery.Planned(t.intent.Owner); err != nil {
		t.diagnostics.AddAttributeError(path.Root("name"), "Two assignments have the same name", tfvalue.Sentence(err.Error()))
	}
}

// checkEmptied warns of hosts in emptied_hosts that neither the fleet nor the state has.
func (t *task) checkEmptied() {
	known := slices.Collect(maps.Keys(t.current))
	if t.result == nil {
		return
	}
	for _, host := range t.result.Schedule.Hosts {
		known = append(known, host.Name)
	}
	for _, host := range t.intent.Protection.EmptiedHosts {
		if !slices.Contains(known, host) {
			t.diagnostics.AddAttributeWarning(path.Root("protection"), "A host of emptied_hosts does not exist",
				tfvalue.Sentence(fmt.Sprintf("neither the fleet nor what is deployed has a host %q%s", host, fleet.DidYouMean(host, known))))
		}
	}
}

// lookAhead finds at plan what would make the apply fail, and checks the protection.
func (t *task) lookAhead(ctx context.Context) {
	if !t.locationKnown || !t.connection.CanAsk() {
		t.outlook = delivery.Unseen(t.intent)
		repository.AddProblems(t.diagnostics, t.outlook.Problems)
		return
	}
	outlook, err := t.connection.Delivery.Plan(ctx, t.intent)
	if err != nil {
		repository.AddError(ctx, t.diagnostics, err, t.known == nil)
		t.outlook = delivery.Unseen(t.intent)
		return
	}
	t.outlook = outlook
	repository.AddProblems(t.diagnostics, outlook.Problems)
}

// isDone says whether the repository has everything as it is wanted, so that there is nothing to write.
func (t *task) isDone() bool {
	if t.known != nil && t.isClosed() && t.outlook.Identity == delivery.Same {
		if !t.known.Drift.IsNone() {
			t.diagnostics.AddAttributeWarning(path.Root("rollout"), "Drift waits for a window", fmt.Sprintf(
				"The folders of %q are not as they were written. A repair is a change, too, and waits for %s.",
				t.known.Owner.Name, t.steps.settings.Windows.Waits(t.steps.evidence.Time)))
		}
		return true
	}
	if t.known == nil || t.outlook.Identity != delivery.Same || !t.known.Drift.IsNone() || !t.model.Content.Equal(t.prior.Content) {
		return false
	}
	if t.model.Delivery.Equal(t.prior.Delivery) || t.prior.PullRequest.IsNull() {
		return true
	}
	// An open request must be updated after a change of delivery, even where nothing else changes.
	return !t.isProposed()
}

// planDestroy checks a destroy against the protection in the state, unless all folders stay.
func (r *assignmentResource) planDestroy(ctx context.Context, state *assignmentModel, m *assignmentPrivate, private privatestate.State, diagnostics *diag.Diagnostics) {
	known, ok := r.known(state, m, diagnostics)
	if !ok {
		return
	}
	if r.connection.Delivery.HasWritten() {
		diagnostics.Append(private.SetKey(ctx, deposedKey, []byte("true"))...)
		return
	}
	ctx, cancel := timeouts.Decode(state.Timeouts, diagnostics).During(ctx, timeouts.Read)
	defer cancel()
	if known.Trees == nil && r.connection.CanAsk() {
		if err := r.connection.Delivery.Refresh(ctx, known); err != nil {
			repository.AddError(ctx, diagnostics, err, false)
			return
		}
	}
	t := &task{private: m}
	outlook := r.connection.Delivery.PlanDestroy(ctx, known, decodeProtection(state.Protection, diagnostics), state.keeps(), t.clusters)
	for i := range outlook.Problems {
		if problem := &outlook.Problems[i]; !problem.Warning {
			problem.Detail += "\n\nAn object that an interrupted replacement has left deposed is in no configuration: \"terraform state rm\" " +
				"removes it from the state, and \"terraform import\" imports the assignment again."
		}
	}
	repository.AddProblems(diagnostics, outlook.Problems)
	repository.AddProblems(diagnostics, r.connection.Delivery.PlannedDestroy(ctx, known, outlook))
}

// warnOfDeparture lists what goes at the former location. It is in changes, too, but not where the assignment is replaced:
// Terraform then shows the changes of a second plan, which has no state, and no warning of that plan.
func (t *task) warnOfDeparture() {
	if t.outlook.Identity != delivery.Moved || t.mayMove() || t.intent.Leave || t.current.Count() == 0 {
		return
	}
	lines := make([]string, 0, t.current.Count())
	for _, key := range t.current.Keys() {
		lines = append(lines, "- "+key.String())
	}
	t.diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Folders at the former location are removed", fmt.Sprintf(
		"The assignment %q moves from %s, and what it has there is removed:\n%s",
		t.known.Owner.Name, repository.LocationText(t.known.Owner.Location), wording.Lines(lines, changes.MaxLines)))
}

// known returns what the state has of an assignment; false where its location cannot be read.
func (r *assignmentResource) known(state *assignmentModel, m *assignmentPrivate, diagnostics *diag.Diagnostics) (*delivery.Known, bool) {
	location, ok := state.location(diagnostics)
	known := &delivery.Known{
		Owner:    delivery.Owner{Location: location, Name: state.Name.ValueString()},
		Settings: decodeDelivery(state.Delivery, diagnostics), PullRequest: state.PullRequest.ValueString(),
	}
	if m != nil {
		known.Owner.Environment = m.Environment
		known.Trees, known.Records, known.Holder, known.Drift = m.Trees, m.Records, m.Holder, m.drift()
		known.Replaced, known.Proposed, known.Tip = m.replaced(), m.Proposed, m.Tip
	}
	return known, ok && r.connection != nil
}
