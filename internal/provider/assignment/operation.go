package assignment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// operation is one plan or one apply of an assignment: the configuration, what is known, and what is computed. Plan and
// apply run the same steps.
type operation struct {
	connection    *connection.Connection
	model         *model               // what the plan wants; its computed attributes are set
	prior         *model               // from state
	private       *assignmentPrivate   // from private state; nil where there is none
	known         *delivery.OwnerState // nil where the assignment is created
	inState       *delivery.OwnerState // known as it is in the state, although a branch was renamed since
	intent        delivery.Desired
	locationKnown bool
	applies       bool // what is planned is written
	relabelled    bool // there is no state, and the branch has another name in the labels than the configuration
	replaces      bool // Terraform plans a replacement without its state, after it has done so with it
	relocated     bool // somebody has renamed the branch or the repository, and the configuration has the new name
	diagnostics   *diag.Diagnostics

	result      *pipeline.Computation // nil while the fleet is not known, and with rollback_to
	rendering   *pipeline.Rendering   // likewise
	backTo      gitops.FolderEdits
	decisions   rollout.Decisions
	current     folder.Trees // what the owner has, as far as the state knows
	relocations relocations
	renamedNow  map[string]string // hosts whose folders this plan moves, to their former names
	outlook     *delivery.Plan

	steps            rolloutConfig
	outcome          *rollout.Outcome              // nil where nothing is to wait for anything
	rollbackContents map[string]gitops.FolderEdits // by commit: what the commits have that the rollout rolls back to
	ruling           *constraintOutcome            // nil with rollback_to
}

// operationOf begins an operation. m is the private state.
func operationOf(ctx context.Context, c *frame.Call[model], m *assignmentPrivate) *operation {
	o := &operation{connection: c.Connection, model: c.Model, prior: c.Prior, private: m, diagnostics: c.Diagnostics, current: folder.Trees{}}
	if o.prior == nil {
		o.prior = &model{}
	}
	wanted := c.Model
	location, locationKnown := wanted.location(o.diagnostics)
	o.locationKnown = locationKnown && !wanted.Name.IsUnknown()
	o.intent = delivery.Desired{
		Owner:      delivery.Owner{Location: location, Name: wanted.Name.ValueString()},
		Settings:   decodeDelivery(wanted.Delivery, o.diagnostics),
		Protection: decodeProtection(wanted.Protection, o.diagnostics),
		// What is not known yet stops no plan; the apply knows it.
		Unprotected: !fleet.IsKnown(tfvalue.Plain(wanted.Protection)) || wanted.OnDestroy.IsUnknown(),
		Adopt:       wanted.Adopt.ValueBool() || wanted.Adopt.IsUnknown(), Leave: wanted.keeps(),
		Clusters: o.clusters, Fleet: rollout.Fleet{IsAddition: o.isAddition}, Causes: o.removalCauses,
	}
	if c.Prior != nil {
		o.known, _ = knownOf(c, c.Prior, m)
		o.inState = o.known
		o.relocate(ctx)
		o.intent.State, o.intent.Former = o.known, o.known.Former
		o.current = o.known.Current()
	}
	return o
}

// relocate takes what the state knows to be at the location of the configuration, where that is the same location by another
// name.
func (o *operation) relocate(ctx context.Context) {
	if !o.locationKnown || o.known == nil || !o.connection.CanAsk() {
		return
	}
	relocated := o.connection.Delivery.FindRelocated(ctx, o.known, o.intent.Owner.Location)
	if relocated == nil {
		return
	}
	o.known, o.relocated = relocated, true
	o.private = o.private.refreshed(relocated)
	o.prior.Content = contentValue(relocated.Current())
}

// clusters returns the names of the clusters that follow hosts, by the fleets before and after.
func (o *operation) clusters(hosts []string) []string {
	if before := o.private.fleet(); before != nil {
		return pipeline.ClustersOf(before, hosts)
	}
	if o.result != nil {
		return o.result.ClustersOf(hosts)
	}
	return pipeline.ClustersOf(nil, hosts)
}

// want computes what the owner should have: the rendered fleet, or what the commit has that it rolls back to. It
// returns false while that is not known yet, or after an error.
func (o *operation) want(ctx context.Context) bool {
	if !o.model.RollbackTo.IsNull() {
		return o.wantRollback(ctx)
	}
	value, known := fleetvalue.Decode(o.model.Fleet, o.diagnostics)
	if !known || o.diagnostics.HasError() {
		return false
	}
	o.intent.Owner.Environment = value.Environment
	o.result = o.connection.Compute(value, o.diagnostics)
	if o.result == nil || o.diagnostics.HasError() {
		return false
	}
	if !o.followNames() {
		return false
	}
	fleetvalue.AddWarnings(o.diagnostics, o.result.Warnings())
	fleetvalue.AddWarnings(o.diagnostics, pipeline.ConstraintWarnings(value.Constraints))
	label := o.label(ctx)
	if o.relabelled && !o.applies {
		return false
	}
	to := pipeline.Destination{Repo: repository.ForTemplates(o.intent.Owner.Location, o.locationKnown), Owner: label}
	if o.rendering = o.private.rendering(o.result, to, o.connection); o.rendering == nil {
		o.rendering = o.result.Render(ctx, to, o.current)
	}
	fleetvalue.AddWarnings(o.diagnostics, o.rendering.Warnings())
	fleetvalue.AddErrors(o.diagnostics, o.rendering.Findings)
	if err := o.followPlaces(ctx); err != nil {
		repository.AddError(ctx, o.diagnostics, err, false)
		return false
	}
	return !o.diagnostics.HasError() && o.decideRollout(ctx)
}

// label is the owner's name in the labels of rendered objects: the name with which it was first written, so that a new
// name changes no folder.
func (o *operation) label(ctx context.Context) string {
	switch {
	case o.private != nil && o.private.Label != "":
		return o.private.Label
	case o.known != nil:
		return o.known.Owner.Name
	case o.locationKnown && o.connection.CanAsk():
		// The plan reports errors when it looks at the location.
		written, err := o.connection.Delivery.ReadOwner(ctx, o.intent.Owner, nil)
		if o.intent.Former = written.Former; err == nil && written.Label() != "" {
			o.relabelled = written.Label() != o.intent.Owner.Name
			return written.Label()
		}
	}
	return o.intent.Owner.Name
}

// wantRollback is want with rollback_to. It does not use the fleet: a rollback must be possible while the fleet has
// errors.
func (o *operation) wantRollback(ctx context.Context) bool {
	commit := o.model.RollbackTo.ValueString()
	checkRollback(o.model.RollbackTo, o.diagnostics)
	if o.model.RollbackTo.IsUnknown() || !o.locationKnown || o.diagnostics.HasError() || !o.connection.CanAsk() {
		return false
	}
	o.diagnostics.AddAttributeWarning(
		path.Root("rollback_to"),
		"Assignment is rolled back",
		fmt.Sprintf(
			"The folders of %q are what commit %s has. Changes of the fleet wait until rollback_to is removed.",
			o.model.Name.ValueString(),
			commit,
		),
	)
	if o.private != nil {
		o.intent.Owner.Environment = o.private.Environment
	}
	hosts, err := o.goBack(ctx, commit)
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, o.known == nil)
		return false
	}
	o.intent.Renames = o.intent.Former.Hosts
	o.backTo, o.decisions = hosts, rollout.Decide(hosts.Trees(), rollout.RollBack)
	return true
}

// plan sets the computed attributes.
func (o *operation) plan(ctx context.Context) {
	o.model.Content, o.model.Commit = types.StringUnknown(), types.StringUnknown()
	o.model.Changes, o.model.PullRequest = types.ListUnknown(types.StringType), types.StringNull()
	o.model.RollingOut, o.model.RolledOut = types.MapUnknown(types.StringType), types.BoolUnknown()
	if o.intent.Settings.PullRequest {
		o.model.PullRequest = types.StringUnknown()
	}
	o.keepProven()
	o.keepSpelling()
	if o.relocated {
		o.diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Branch has another name now", fmt.Sprintf(
			"Nothing is at the former location of %q any more, and branch %q at %s has the records of this assignment: it is the same location. "+
				"No folder moves because of that. With render = \"objects\", objects that name the branch change with it.",
			o.known.Owner.Name, o.intent.Owner.Location.Branch, o.intent.Owner.Location.URL))
	}
	if o.locationKnown {
		o.check()
	}
	if o.diagnostics.HasError() || !o.want(ctx) {
		return
	}
	o.intent.After, o.intent.Fleet.Workloads = o.decisions.Trees(o.current), o.workloads()
	o.warnOfFailure()
	o.checkEmptied()
	o.checkConstraints(ctx, false)
	o.warnOfNewName()
	if o.lookAhead(ctx); o.connection != nil && o.locationKnown && !o.replaces {
		repository.AddProblems(o.diagnostics, o.connection.Delivery.RegisterPlan(ctx, o.intent, o.outlook))
	}
	if o.diagnostics.HasError() {
		return
	}
	o.model.Content = contentValue(o.intent.After)
	o.setProgress()
	done := o.isDone()
	o.setProven(ctx, done)
	if done {
		o.model.Content, o.model.Commit, o.model.Changes = o.prior.Content, o.prior.Commit, o.prior.Changes
		o.addOtherLines(ctx)
		if o.intent.Settings.PullRequest {
			o.model.PullRequest = o.prior.PullRequest
		}
		return
	}
	o.warnOfImport()
	lines, complete := o.describe(ctx)
	complete = complete && o.ruling.allDecided()
	o.warnOfDeparture()
	switch {
	case o.diagnostics.HasError():
	case complete:
		o.model.Changes = tfvalue.Texts(lines)
	default:
		o.diagnostics.AddAttributeWarning(path.Root("changes"), "Changes that are known so far", wording.Lines(lines, changes.MaxLines))
	}
}

// addOtherLines plans an update where no folder changes, but the progress of a rollout, a rule or what a preview shows does.
func (o *operation) addOtherLines(ctx context.Context) {
	var lines []string
	rollout := !o.isProgressInState() && o.outcome != nil
	if rollout {
		lines = o.outcome.Lines()
	}
	if !rollout && o.outcome != nil {
		if _, others := o.outcome.Split(); others.HasMore() {
			o.diagnostics.AddAttributeWarning(path.Root("rollout"), "Rollout waits", wording.Lines(others.Lines(), changes.MaxLines))
		}
	}
	proven := !o.model.Proven.IsUnknown() && !o.model.Proven.Equal(o.prior.Proven) && !o.model.Proven.IsNull()
	if proven {
		lines = append(lines, provenLine)
	}
	rules := o.ruling != nil && !o.ruling.difference.None()
	if rules {
		lines = append(lines, changes.LimitLines(o.constraintLines(nil))...)
	}
	upgrades, isCertain := o.upgradeLines(ctx)
	lines = append(lines, upgrades...)
	switch {
	case !o.ruling.allDecided(), o.model.Proven.IsUnknown(), !isCertain:
		o.model.Changes = types.ListUnknown(types.StringType)
	case rollout || rules || proven || len(upgrades) > 0:
		o.model.Changes = tfvalue.Texts(lines)
	}
}

// keepSpelling keeps the location of the state where the configuration has another spelling of the same location, so
// that nothing changes.
func (o *operation) keepSpelling() {
	if o.known == nil || !o.locationKnown || o.relocated || o.known.Owner.Location != o.intent.Owner.Location {
		return
	}
	o.model.GitopsRepo = o.prior.GitopsRepo
}

// check finds errors without reading the repository.
func (o *operation) check() {
	if o.connection == nil {
		return
	}
	if err := o.connection.Delivery.CheckSettings(o.intent.Settings, o.intent.Owner); err != nil && fleet.IsKnown(tfvalue.Plain(o.model.Delivery)) {
		o.diagnostics.AddAttributeError(path.Root("delivery"), "Invalid delivery", tfvalue.Sentence(err.Error()))
	}
	if o.replaces { // the same resource has been planned with its state
		return
	}
	if err := o.connection.Delivery.RegisterOwner(o.intent.Owner); err != nil {
		o.diagnostics.AddAttributeError(path.Root("name"), "Two assignments have the same name", tfvalue.Sentence(err.Error()))
	}
}

// checkEmptied warns of hosts in emptied_hosts that neither the fleet nor the state has.
func (o *operation) checkEmptied() {
	known := slices.Collect(maps.Keys(o.current))
	if o.result == nil {
		return
	}
	for _, host := range o.result.Schedule.Hosts {
		known = append(known, host.Name)
	}
	for _, host := range o.intent.Protection.EmptiedHosts {
		if !slices.Contains(known, host) {
			o.diagnostics.AddAttributeWarning(path.Root("protection"), "A host of emptied_hosts does not exist",
				tfvalue.Sentence(fmt.Sprintf("neither the fleet nor what is deployed has a host %q%s", host, fleet.DidYouMean(host, known))))
		}
	}
}

// lookAhead finds at plan what would make the apply fail, and checks the protection.
func (o *operation) lookAhead(ctx context.Context) {
	if !o.locationKnown || !o.connection.CanAsk() {
		o.outlook = delivery.PlanUnread(o.intent)
		repository.AddProblems(o.diagnostics, o.outlook.Problems)
		return
	}
	outlook, err := o.connection.Delivery.Plan(ctx, o.intent)
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, o.known == nil)
		o.outlook = delivery.PlanUnread(o.intent)
		return
	}
	o.outlook = outlook
	repository.AddProblems(o.diagnostics, outlook.Problems)
}

// isDone says whether the repository has everything as it is wanted, so that there is nothing to write.
func (o *operation) isDone() bool {
	if o.known != nil && o.isClosed() && o.outlook.Identity == delivery.Same {
		if !o.known.Drift.IsNone() {
			o.diagnostics.AddAttributeWarning(path.Root("rollout"), "Drift waits for a window", fmt.Sprintf(
				"The folders of %q are not as they were written. A repair is a change, too, and waits for %s.",
				o.known.Owner.Name, gate.Waits(o.steps.evidence.Time(), o.steps.settings.Windows)))
		}
		return true
	}
	if o.known == nil || o.outlook.Identity != delivery.Same || !o.known.Drift.IsNone() || !o.model.Content.Equal(o.prior.Content) {
		return false
	}
	if o.model.Delivery.Equal(o.prior.Delivery) || o.prior.PullRequest.IsNull() {
		return true
	}
	// An open request must be updated after a change of delivery, even where nothing else changes.
	return !o.isProposed()
}

// warnOfImport names the commit of the state that may still have what this one has read from the records.
func (o *operation) warnOfImport() {
	if o.known == nil || o.known.Imported == "" || o.intent.Adopt {
		return
	}
	o.diagnostics.AddAttributeWarning(path.Root("name"), "Assignment is taken over from another state", fmt.Sprintf(
		"This state knows the assignment %q from its records, which were written by %s. This apply makes it this state's: if another state "+
			"still has the assignment, the next plan of that one fails.", o.known.Owner.Name, o.known.Imported))
}

// planDestroy checks a destroy against the protection in the state, unless all folders stay.
func planDestroy(ctx context.Context, c *frame.Call[model]) {
	state, private := c.Model, loadAssignment(ctx, c.Private, c.Diagnostics)
	takeCreation(ctx, c.Private, c.Diagnostics) // of a replacement that came to nothing
	known, ok := knownOf(c, state, private)
	if !ok {
		return
	}
	if c.Connection.Delivery.IsWriting() {
		c.Diagnostics.Append(c.Private.SetKey(ctx, deposedKey, []byte("true"))...)
		return
	}
	if known.Trees == nil && c.Connection.CanAsk() {
		if err := c.Connection.Delivery.Refresh(ctx, known); err != nil {
			repository.AddError(ctx, c.Diagnostics, err, false)
			return
		}
	}
	o := &operation{private: private}
	outlook := c.Connection.Delivery.PlanDestroy(ctx, known, decodeProtection(state.Protection, c.Diagnostics), state.keeps(), o.clusters)
	for i := range outlook.Problems {
		if problem := &outlook.Problems[i]; !problem.Warning {
			problem.Detail += "\n\nAn object that an interrupted replacement has left deposed is in no configuration: \"terraform state rm\" " +
				"removes it from the state, and \"terraform import\" imports the assignment again."
		}
	}
	repository.AddProblems(c.Diagnostics, outlook.Problems)
	repository.AddProblems(c.Diagnostics, c.Connection.Delivery.RegisterDestroy(ctx, known, outlook))
	if known.Settings.PullRequest && len(known.Trees) > 0 && !state.keeps() && !c.Diagnostics.HasError() {
		c.Diagnostics.AddAttributeWarning(path.Root("delivery"), "Folders stay until the request is merged", fmt.Sprintf(
			"A destroy of the assignment %q proposes the removal of its folders in a pull request, and removes the assignment from the state. "+
				"Until the request is merged, the folders stay on branch %q, and clusters run what is in them. "+
				"If the request is closed, they stay for good.", known.Owner.Name, known.Owner.Location.Branch))
	}
}

// warnOfDeparture lists what goes at the former location. It is in changes, too, but not where the assignment is replaced:
// Terraform then shows the changes of a second plan, which has no state, and no warning of that plan.
func (o *operation) warnOfDeparture() {
	if o.outlook.Identity != delivery.Moved || o.mayMove() || o.intent.Leave || o.current.Count() == 0 {
		return
	}
	lines := make([]string, 0, o.current.Count())
	for _, key := range o.current.Keys() {
		lines = append(lines, "- "+key.String())
	}
	o.diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Folders at the former location are removed", fmt.Sprintf(
		"The assignment %q moves from %s, and what it has there is removed:\n%s",
		o.known.Owner.Name, repository.LocationText(o.known.Owner.Location), wording.Lines(lines, changes.MaxLines)))
}

// knownOf returns what the state has of an assignment; false where its location cannot be read.
func knownOf(c *frame.Call[model], state *model, m *assignmentPrivate) (*delivery.OwnerState, bool) {
	location, ok := state.location(c.Diagnostics)
	known := &delivery.OwnerState{
		Owner:    delivery.Owner{Location: location, Name: state.Name.ValueString()},
		Settings: decodeDelivery(state.Delivery, c.Diagnostics), PullRequest: state.PullRequest.ValueString(),
	}
	if m != nil {
		known.Owner.Environment, known.SavedState = m.Environment, m.SavedState
	}
	return known, ok && c.Connection != nil
}
