// Package assignment implements flotilla_assignment, which writes the folders of one owner to a GitOps repository.
package assignment

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// New returns the resource.
func New() resource.Resource {
	return frame.Resource[assignmentModel]{
		Name: "assignment", Schema: definition, Validate: validate, Plan: plan, PlanDestroy: planDestroy, Create: create, Read: read, Update: update,
		Delete: remove, Import: importState, Identity: repository.Identity,
		Identify: func(m *assignmentModel) map[string]types.String { return repository.Identify(m.Name, m.GitopsRepo) },
		WriteOnly: func(m *assignmentModel) map[string]any {
			return map[string]any{"fleet": &m.Fleet, "evidence": &m.Evidence, "source": &m.Source}
		},
	}.New()
}

// definition has large values as JSON strings, because the framework plans nested values in quadratic time.
var definition = schema.Schema{
	MarkdownDescription: "Schedules, hydrates and renders a fleet, and commits the outcome to a GitOps repository: one commit per " +
		"apply, or none when nothing changed. It owns the folders that it wrote, and nothing else; a file changed, removed or " +
		"added by hand in one of them shows up in the next plan, and the next apply repairs it.",
	Attributes: map[string]schema.Attribute{
		"name": schemas.RequiredText("Name of the owner, a DNS label. The repository's `.flotilla/<name>` records what it owns. A new name " +
			"is a handover: the folders stay as they are."),
		"fleet": schemas.RequiredWriteOnly(
			"The fleet that `provider::flotilla::fleet` or `control_plane` returned, through a `local`. It is write-only: in no " +
				"state, and one line in a plan. Values that are ephemeral have to be the same at plan and apply. `changes` says what follows from a change of it. A violation of a constraint of " +
				"it that is enforced is an error, before anything is written.",
		),
		"gitops_repo": schemas.RequiredDynamic(
			schemas.Location("Where to write, such as `flotilla_environment.dev.gitops_repo`. A local path (`~/` is your home directory) or " +
				"`file://` that does not exist becomes a bare repository. Another spelling of the URL, or a mirror, changes nothing: " +
				"two locations are the same when the one has the commit of the other. A different location is written first; then " +
				"the old one is cleared, which the plan shows and protection holds."),
		),
		"delivery": schemas.OptionalDynamic(
			schemas.Setting(
				"How to write: by commits to the branch, which is the default, or by one pull request that is kept up to date. An open request is "+
					"pending, not drift.",
				fleet.ObjectType,
				DeliveryTable,
			),
		),
		"adopt": schemas.OptionalBool("Take over folders that another assignment's records list, or that hold something else and are in " +
			"no records, which is an error otherwise; and remove folders of this name that no state knows and the fleet " +
			"does not want; and take the assignment back from another state that has it now. The plan names them. A folder without a record that is as wanted already needs no `adopt`."),
		"protection": schemas.OptionalDynamic(
			schemas.Setting(
				"The removals that are allowed, of all assignments, of each host and of each workload. A destroy, and a removal from the configuration, are held to what was "+
					"applied last: apply the change of `protection` first.",
				fleet.ObjectType,
				ProtectionTable,
			),
		),
		"on_destroy": schemas.OptionalText(
			"The effect of a destroy, of a removal from the configuration, or of a change of `gitops_repo` at the old location: " +
				"`delete` (default) removes the folders; `keep` leaves them and stops managing them, so that any assignment may have " +
				"them later. Protection does not hold what is kept. Apply a change of `on_destroy` before the destroy, and before a replacement with `create_before_destroy`.",
		),
		"rollback_to": schemas.OptionalText(
			"Full id of a commit of the branch, as `flotilla_history` gives it: while it is set, the folders are what " +
				"that commit has of this assignment, and the fleet is not used. The plan shows what is rolled back, protection " +
				"holds it, and drift shows against it. Without it the next apply writes what the fleet wants.",
		),
		"rollout": schemas.OptionalDynamic(
			schemas.Setting(
				"Writes a change to one stage after the other, each when the one before has proven it: see the guide [Staged rollouts](../guides/staged-rollouts.md). "+
					"Needs `evidence`. Without it everything goes at once.",
				fleet.ObjectType,
				rollout.SettingsTable,
			),
		),
		"holds": schemas.OptionalDynamic(
			schemas.Setting("Folders that stay as they are until the hold is removed.", fleet.ObjectsType, rollout.HoldTable),
		),
		"evidence": schemas.OptionalWriteOnly(
			"The reports of clusters, as the `flotilla_compliance` of the same name, fleet and location gives it; or a list of such texts, also of " +
				"`flotilla_cluster_facts` and of `flotilla_measurements` of the same fleet. All of a list have to agree: proven is what all that speak of it call ready, " +
				"failed is what any calls failed, and what only some of them know is waited for. The plan says which one is waited for, with its figure. It is " +
				"write-only: in no state, and no difference in a plan. The time of the oldest is the time of the rollout: a clock is read only to check windows before writing.",
		),
		"timeouts": schemas.OptionalDynamic(
			schemas.Setting("How long operations may take, connecting included.", fleet.ObjectType, timeouts.Table),
		),
		"commit_message": schemas.OptionalText(
			"First line of commit messages, without a line break. Default: how many assignments were added, changed and removed.",
		),
		"source": schemas.OptionalWriteOnly(schemas.Setting("Where the configuration of Terraform is. "+
			"Commits of this assignment have it as the trailer `Flotilla-Source`, and the records of the folders that they change, so that `flotilla_history` and `flotilla_inventory` "+
			"say which commit a change came from. It is write-only: another commit alone is no difference in a plan, and writes nothing. A destroy does not know it.", fleet.ObjectType, SourceTable)),
		"changes": schemas.ComputedTexts(
			"The changes of the plan, for people: how many hosts and assignments, what is removed, what is added, and " +
				"which keys of which files change, where, and by which object of the fleet; with `render`, which fields of which final objects; and which constraints that changes, or violates. Never a value. In the state " +
				"it is what the last apply changed; the next plan begins without it. While something is not known yet, a warning says what is.",
		),
		"content": schemas.ComputedText("One hash of all folders of this assignment, on all hosts. `flotilla_inventory` says what is where."),
		"candidate": schemas.OptionalDynamic(
			"The sources of the fleet, as a value of any type: versions, a commit. It decides nothing here; once all of it has " +
				"been written and has proven itself, it is `proven`.",
		),
		"proven": schemas.ComputedDynamic(
			"The last `candidate` of which everything was on the branch, by the refreshed state: merged, where a pull request " +
				"proposes it; rolled out, where there is a `rollout`; and ready on all clusters, where there is `evidence` without a `rollout`. It never " +
				"changes in a plan that writes, so a later plan shows `proven = A -> B`, and that apply writes nothing. It is the `candidate` of a `flotilla_promotion`.",
		),
		"rolling_out": schemas.ComputedTextMap(
			"By deployment target, while its change is under way: stage, hosts, since when, what it waits for, and what to approve.",
		),
		"rolled_out": schemas.ComputedBool(
			"Whether everything is as the fleet wants it after this apply, and proven where a rollout asks for that. Without a `rollout` the plan " +
				"that writes says `true` already: what a promotion waits for is `proven`.",
		),
		"commit":       schemas.ComputedText("The last commit of this owner, or the one at which everything was found as wanted."),
		"pull_request": schemas.ComputedText("URL of the pull request; null with `mode = \"push\"`."),
	},
}

type assignmentModel struct {
	Name          types.String  `tfsdk:"name"`
	Fleet         types.Dynamic `tfsdk:"fleet"`
	GitopsRepo    types.Dynamic `tfsdk:"gitops_repo"`
	Delivery      types.Dynamic `tfsdk:"delivery"`
	Protection    types.Dynamic `tfsdk:"protection"`
	Adopt         types.Bool    `tfsdk:"adopt"`
	CommitMessage types.String  `tfsdk:"commit_message"`
	RollbackTo    types.String  `tfsdk:"rollback_to"`
	OnDestroy     types.String  `tfsdk:"on_destroy"`
	Timeouts      types.Dynamic `tfsdk:"timeouts"`
	Rollout       types.Dynamic `tfsdk:"rollout"`
	Holds         types.Dynamic `tfsdk:"holds"`
	Evidence      types.Dynamic `tfsdk:"evidence"`
	Source        types.Dynamic `tfsdk:"source"`
	Candidate     types.Dynamic `tfsdk:"candidate"`
	Proven        types.Dynamic `tfsdk:"proven"`
	RollingOut    types.Map     `tfsdk:"rolling_out"`
	RolledOut     types.Bool    `tfsdk:"rolled_out"`
	Changes       types.List    `tfsdk:"changes"`
	Content       types.String  `tfsdk:"content"`
	Commit        types.String  `tfsdk:"commit"`
	PullRequest   types.String  `tfsdk:"pull_request"`
}

// validate checks the configuration on its own, without servers.
func validate(_ context.Context, m *assignmentModel, diagnostics *diag.Diagnostics) {
	m.location(diagnostics)
	fleetvalue.Decode(m.Fleet, diagnostics)
	decodeDelivery(m.Delivery, diagnostics)
	decodeProtection(m.Protection, diagnostics)
	repository.CheckOwnerName(m.Name, diagnostics)
	tfvalue.CheckOneOf("on_destroy", m.OnDestroy, diagnostics, "delete", "keep")
	tfvalue.CheckFraction("candidate", m.Candidate, diagnostics)
	checkRollback(m.RollbackTo, diagnostics)
	checkCommitMessage(m.CommitMessage, diagnostics)
	tfvalue.CheckOpenText("commit_message", m.CommitMessage, diagnostics)
	decodeSource(m.Source, diagnostics)
	m.decodeRollout(diagnostics)
}

func plan(ctx context.Context, c *frame.Call[assignmentModel]) {
	before := loadAssignment(ctx, c.Private, c.Diagnostics)
	var r request
	if c.Prior != nil {
		takeCreation(ctx, c.Private, c.Diagnostics) // of a replacement that came to nothing
		r = decode(ctx, c, before)
	} else { // private state alone says that the object is replaced
		r = decode(ctx, c, nil)
		r.isReplacement = before != nil
	}
	planRequest(ctx, r)
	if c.Prior == nil && !c.Diagnostics.HasError() {
		privatestate.Save(ctx, creationKey, creation{r.owner.Location, r.protection, c.Model.keeps()}, c.Private, c.Diagnostics)
	}
}

func create(ctx context.Context, c *frame.Call[assignmentModel]) {
	after, _ := applyRequest(ctx, decode(ctx, c, nil))
	if c.Diagnostics.HasError() {
		return
	}
	c.Model.Proven = types.DynamicNull()
	after.save(ctx, c.Private, c.Diagnostics)
}

// read compares the trees of the owned folders at the tip with the written ones.
func read(ctx context.Context, c *frame.Call[assignmentModel]) {
	state, before := c.Model, loadAssignment(ctx, c.Private, c.Diagnostics)
	known, ok := decodeState(c, state, before)
	if c.Diagnostics.HasError() || !ok || !c.Connection.CanAsk() {
		return
	}
	if err := c.Connection.Delivery.Refresh(ctx, known); err != nil {
		repository.AddError(ctx, c.Diagnostics, err, false)
		return
	}
	switch at := known.Owner.Location; {
	case known.Drift.Cause == delivery.BranchGone && !known.Settings.PullRequest: // else the plan has an error
		c.Diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Branch does not exist any more", fmt.Sprintf(
			"There is no branch %q at %s. If it was renamed, set its new name in gitops_repo: otherwise the next apply creates the branch again, and writes everything.",
			at.Branch,
			at.URL,
		))
	case known.Drift.Cause == delivery.RepositoryGone:
		c.Diagnostics.AddAttributeWarning(
			path.Root("gitops_repo"),
			"Repository is gone",
			fmt.Sprintf(
				"There is no repository at %q any more. The next apply writes everything again, if the repository exists by then.",
				known.Owner.Location.URL,
			),
		)
	}
	state.Content = contentValue(known.Current())
	state.Changes = tfvalue.Texts(nil)
	if state.RolledOut.IsNull() { // imported, or written by a version without rollouts
		state.RollingOut, state.RolledOut = types.MapValueMust(types.StringType, nil), types.BoolValue(true)
	}
	after := before.refreshed(known)
	if after.needsRecords() && (!before.equal(after) || before.Written == nil) {
		written, err := c.Connection.Delivery.ReadOwner(ctx, known.Owner, nil)
		if err != nil {
			repository.AddError(ctx, c.Diagnostics, err, false)
			return
		}
		after.Tip = written.Tip
		after.noteWritten(written.Records)
	}
	if !before.equal(after) { // sealing takes longer than all else of a refresh
		after.save(ctx, c.Private, c.Diagnostics)
	}
}

func update(ctx context.Context, c *frame.Call[assignmentModel]) {
	prior, plan, before := c.Prior, c.Model, loadAssignment(ctx, c.Private, c.Diagnostics)
	if c.Diagnostics.HasError() {
		return
	}
	var after *assignmentPrivate
	var err error
	// A change of the commit message alone writes nothing, nor does a change of delivery without an open request.
	if plan.Commit.IsUnknown() {
		after, err = applyRequest(ctx, decode(ctx, c, before))
	} else if !plan.RollingOut.Equal(prior.RollingOut) || !plan.RolledOut.Equal(prior.RolledOut) || !plan.Changes.Equal(prior.Changes) ||
		!plan.Content.Equal(prior.Content) { // a branch that was renamed
		after = saveProgress(ctx, decode(ctx, c, before), before)
	}
	if errors.Is(err, delivery.ErrProposed) { // the next plan completes the request
		c.Diagnostics.Append(c.State.SetAttribute(ctx, path.Root("pull_request"), plan.PullRequest)...)
		before.incomplete().save(ctx, c.Private, c.Diagnostics)
	}
	if c.Diagnostics.HasError() {
		return
	}
	if after != nil {
		after.save(ctx, c.Private, c.Diagnostics)
	}
	if plan.Proven.IsUnknown() {
		plan.Proven = prior.Proven
	}
}
