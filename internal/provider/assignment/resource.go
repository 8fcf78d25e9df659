// Package assignment implements flotilla_assignment, which writes the folders of one owner to a GitOps repository.
package assignment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// New returns the resource.
func New() resource.Resource {
	return frame.Resource[assignmentModel]{
		Name: "assignment", Schema: definition, Validate: validate, Plan: plan, PlanDestroy: planDestroy,
		Create: create, Read: read, Update: update, Delete: remove, Import: importState, Identity: repository.Identity,
		Identify: func(m *assignmentModel) map[string]types.String { return repository.Identify(m.Name, m.GitopsRepo) },
		WriteOnly: func(m *assignmentModel) map[string]any {
			return map[string]any{"fleet": &m.Fleet, "evidence": &m.Evidence, "source": &m.Source}
		},
	}.New()
}

// definition has large values as JSON strings, because the framework plans nested values in quadratic time.
var definition = schema.Schema{
	MarkdownDescription: "Schedules, hydrates and renders a fleet, and commits the result to a GitOps repository: one commit per " +
		"apply, or none if nothing changed. It owns only the folders that it wrote. A file changed, removed or added by hand in one of " +
		"them is drift: the next plan shows it, and the next apply repairs it.",
	Attributes: map[string]schema.Attribute{
		"name": schemas.RequiredText("Name of the owner, a DNS label. The repository's `.flotilla/<name>` records its folders. A new name " +
			"hands the folders over; they do not change."),
		"fleet": schemas.RequiredWriteOnly("The fleet from `provider::flotilla::fleet` or `control_plane`, through a `local`. It " +
			"is write-only: it is in no state, and takes one line in a plan; `changes` shows the effect of a changed fleet. " +
			"Ephemeral values must be the same at plan and apply. A violation of an enforced constraint is an error before " +
			"anything is written."),
		"gitops_repo": schemas.RequiredDynamic(schemas.Location("The location to write to, such as " +
			"`flotilla_environment.dev.gitops_repo`. A local path (`~/` is your home directory) or `file://` URL that does not " +
			"exist becomes a bare repository. Another URL of the same repository, such as a mirror, changes nothing: " +
			"Flotilla recognizes the repository by its last commit. A different location is written first; then the former one is " +
			"cleared. The plan shows that, and `protection` applies to it.")),
		"delivery": schemas.OptionalDynamic(schemas.Setting("How to write: by commits to the branch (default), or by one pull "+
			"request that stays up to date. An open request is pending, not drift.", fleet.ObjectType, DeliveryTable)),
		"adopt": schemas.OptionalBool("Whether to take over folders that are an error otherwise: folders in the records of another assignment, " +
			"and folders without a record whose content differs. It also removes folders of this name that the state does not know and the fleet " +
			"does not want, and takes the assignment back from another state that has taken it over. The plan names all of them. A folder " +
			"without a record whose content is already right needs no `adopt`."),
		"protection": schemas.OptionalDynamic(schemas.Setting("Limits on removals: of all assignments, of each host and of each "+
			"workload. A destroy, and a removal from the configuration, obey the limits of the last apply: apply a change of "+
			"`protection` first.", fleet.ObjectType, ProtectionTable)),
		"on_destroy": schemas.OptionalText("The effect of a destroy, of a removal from the configuration, or of a new " +
			"`gitops_repo` on the former location: `delete` (default) removes the folders; `keep` leaves them without an owner, " +
			"so that any assignment may take them later. Protection does not apply to `keep`. Apply a change of `on_destroy` " +
			"before the destroy, and before a replacement with `create_before_destroy`."),
		"rollback_to": schemas.OptionalText("Full id of a commit of the branch, from `flotilla_history`. While it is set, the " +
			"folders have their content at that commit, and the fleet is not used. The plan shows the rollback, protection " +
			"applies to it, and drift is relative to it. Once it is removed, the next apply writes the fleet again."),
		"rollout": schemas.OptionalDynamic(schemas.Setting("Writes a change to one stage after another, each after the stage "+
			"before has proven it: see the guide [Roll out and promote](../guides/rollouts.md). It needs `evidence`. Without "+
			"`rollout`, everything changes at once.", fleet.ObjectType, rollout.SettingsTable)),
		"holds": schemas.OptionalDynamic(schemas.Setting("Folders that stay unchanged until the hold is "+
			"removed.", fleet.ObjectsType, rollout.HoldTable)),
		"evidence": schemas.OptionalWriteOnly("The reports of clusters: `evidence` of the `flotilla_compliance` with the same " +
			"name, fleet and location, or a list of documents, also from `flotilla_cluster_facts` and `flotilla_measurements` " +
			"with the same fleet. An assignment is proven if all documents that mention it call it ready, " +
			"and failed if one calls it failed. The plan names the document that a rollout waits for, with its figure. `evidence` is " +
			"write-only: it is in no state, and makes no difference in a plan. Soak times and deadlines count by the time of the " +
			"oldest document. An apply reads a clock only to check windows."),
		"timeouts": schemas.OptionalDynamic(schemas.Setting("Time limits of operations, including "+
			"connecting.", fleet.ObjectType, timeouts.Table)),
		"commit_message": schemas.OptionalText("First line of commit messages, without a line break. Default: the numbers of " +
			"added, changed and removed assignments."),
		"source": schemas.OptionalWriteOnly(schemas.Setting("The commit of the Terraform configuration. Commits of this assignment have it "+
			"as the trailer `Flotilla-Source`, and the records of changed folders have it for `flotilla_history` and `flotilla_inventory`. "+
			"It is write-only: another commit alone makes no difference in a plan, and writes nothing. The commit of a destroy has no trailer.",
			fleet.ObjectType, SourceTable)),
		"changes": schemas.ComputedTexts("The changes of the plan for people: the numbers of hosts and assignments; removals and " +
			"additions; the changed keys, their files and hosts, and the object of the fleet that caused the change; with " +
			"`render`, the changed fields of final objects; and constraints that changed, or that the change violates. It never " +
			"has a value. The state has the changes of the last apply, until the next plan. While something is unknown, a warning " +
			"has the changes known so far."),
		"content": schemas.ComputedText("Hash of all folders of this assignment on all hosts. `flotilla_inventory` lists the folders."),
		"candidate": schemas.OptionalDynamic("The sources of the fleet, as a value of any type: versions, a commit. It has no " +
			"effect here. When the whole content of this fleet is written and proven, `proven` gets this value."),
		"proven": schemas.ComputedDynamic("The last `candidate` whose whole content is on the branch. With pull requests, it has to be merged; " +
			"with `rollout`, rolled out; with `evidence` and no `rollout`, ready on all clusters. It follows from the refreshed state, so it " +
			"never changes in a plan that writes: a later plan shows `proven = A -> B`, and its apply writes " +
			"nothing. Use it as the `candidate` of a `flotilla_promotion`."),
		"rolling_out": schema.MapAttribute{
			Computed: true, ElementType: repository.RollingOut.Type(),
			MarkdownDescription: fmt.Sprintf("A summary by deployment target, while its change is under way. If more than %d deployment "+
				"targets are, deployment targets at the same stage share one object, and the map has the %[1]d most urgent ones. "+
				"`rollouts` of `flotilla_compliance` always has an object for each deployment target.", rollout.MaxRollingOut) +
				repository.RollingOut.Meanings(),
		},
		"progress": schema.StringAttribute{
			Computed: true, Sensitive: true,
			MarkdownDescription: "The progress of every deployment target whose change is under way, for `progress` of " +
				"`flotilla_compliance` and of `flotilla_overview`: a JSON object by deployment target, `{}` if there are none. It holds no " +
				"secret. It is marked as sensitive so that a plan has one line for it.",
		},
		"rolled_out": schemas.ComputedBool("Whether everything is as the fleet wants it after this apply, and proven if there is " +
			"a `rollout`. Without a `rollout`, the plan that writes already shows `true`, so use `proven` for promotions."),
		"commit":       schemas.ComputedText("The last commit of this owner, or the commit that already had the wanted content."),
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
	Progress      types.String  `tfsdk:"progress"`
	RolledOut     types.Bool    `tfsdk:"rolled_out"`
	Changes       types.List    `tfsdk:"changes"`
	Content       types.String  `tfsdk:"content"`
	Commit        types.String  `tfsdk:"commit"`
	PullRequest   types.String  `tfsdk:"pull_request"`
}

func validate(_ context.Context, m *assignmentModel, diagnostics *diag.Diagnostics) {
	repository.DecodeLocation(m.GitopsRepo, diagnostics)
	fleetvalue.Decode(m.Fleet, diagnostics)
	decodeDelivery(m.Delivery, diagnostics)
	decodeProtection(m.Protection, diagnostics)
	repository.CheckOwnerName(m.Name, diagnostics)
	tfvalue.CheckOneOf("on_destroy", m.OnDestroy, diagnostics, "delete", "keep")
	tfvalue.CheckFraction("candidate", m.Candidate, diagnostics)
	checkRollback(m.RollbackTo, diagnostics)
	if strings.ContainsAny(m.CommitMessage.ValueString(), "\r\n") { // Flotilla adds lines to it
		diagnostics.AddAttributeError(path.Root("commit_message"), "Invalid commit_message",
			"The message must be one line: it is the first line of the commit message. Take out the line break.")
	}
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
		tfvalue.AddWarningf(c.Diagnostics, path.Root("gitops_repo"), "Branch does not exist any more",
			"There is no branch %q at %s. If it was renamed, set its new name in gitops_repo. Otherwise the next apply creates the branch again, "+
				"with the folders of this assignment. It lacks those of other assignments until they are applied, too: until then, agents "+
				"remove what others run on the same hosts.", at.Branch, at.URL)
	case known.Drift.Cause == delivery.RepositoryGone:
		tfvalue.AddWarningf(c.Diagnostics, path.Root("gitops_repo"), "Repository is gone",
			"There is no repository at %q any more. The next apply writes everything again, if the repository exists by then.",
			known.Owner.Location.URL)
	}
	state.Content = contentValue(known.Current())
	state.Changes = tfvalue.Texts(nil)
	if state.RolledOut.IsNull() { // imported, or written by a version without rollouts
		state.setProgress(&rollout.Outcome{RolledOut: true})
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
	} else if !plan.hasProgressOf(prior) || !plan.Changes.Equal(prior.Changes) ||
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

// importState takes an identity or "<url>#<branch>:<path>:<name>", and reads the owner's folders from the records.
func importState(ctx context.Context, c *connection.Connection, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	repo, at, name, ok := repository.Imported(ctx, req, &resp.Diagnostics)
	if !ok {
		return
	}
	imported := assignmentModel{
		Name: name, GitopsRepo: repo, Changes: tfvalue.Texts(nil), RollingOut: types.MapNull(repository.RollingOut.Type()),
	}
	repository.CheckOwnerName(imported.Name, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := timeouts.Default.During(ctx, timeouts.Read, &c.Budget)
	defer cancel()
	known := &delivery.OwnerState{Owner: delivery.Owner{Location: at, Name: name.ValueString()}}
	if err := c.Delivery.Refresh(ctx, known); err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	if len(known.Trees) == 0 {
		resp.Diagnostics.AddError("Nothing to import",
			fmt.Sprintf("The repository has no record of an owner called %q at path %q of branch %q.", name.ValueString(), at.Path, at.Branch))
		return
	}
	imported.Commit = types.StringValue(known.Tip)
	imported.Content = contentValue(known.Current())
	m := &assignmentPrivate{SavedState: known.SavedState}
	m.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &imported)...)
}

func (m *assignmentModel) keeps() bool { return m.OnDestroy.ValueString() == "keep" }

func checkRollback(value types.String, diagnostics *diag.Diagnostics) {
	if value.IsNull() || value.IsUnknown() {
		return
	}
	if err := git.CheckCommit(value.ValueString()); err != nil {
		diagnostics.AddAttributeError(path.Root("rollback_to"), "Invalid commit", tfvalue.Sentence(err.Error()))
	}
}

// contentValue hashes all folders and hosts. It is unknown while the content of a folder is.
func contentValue(trees folder.Trees) types.String {
	h := sha256.New()
	for _, host := range slices.Sorted(maps.Keys(trees)) {
		fmt.Fprintf(h, "%s\n", host)
		for _, target := range slices.Sorted(maps.Keys(trees[host])) {
			tree := trees[host][target]
			if tree == "" {
				return types.StringUnknown()
			}
			fmt.Fprintf(h, "%s/%s %s\n", host, target, tree)
		}
	}
	return types.StringValue(hex.EncodeToString(h.Sum(nil))[:16])
}
