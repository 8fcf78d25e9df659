package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

var (
	_ resource.Resource                   = &assignmentResource{}
	_ resource.ResourceWithConfigure      = &assignmentResource{}
	_ resource.ResourceWithValidateConfig = &assignmentResource{}
	_ resource.ResourceWithModifyPlan     = &assignmentResource{}
	_ resource.ResourceWithImportState    = &assignmentResource{}
)

// assignmentResource is one owner of many folders of a GitOps repository.
type assignmentResource struct {
	connection *connection
}

func newAssignmentResource() resource.Resource { return &assignmentResource{} }

// Metadata names the resource.
func (r *assignmentResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_assignment"
}

// Schema holds whatever may be large as JSON strings: the framework's planning is quadratic in the
// number of nested values.
func (r *assignmentResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Schedules, hydrates and renders a fleet, and commits the outcome to a GitOps repository: one commit per " +
			"apply, or none when nothing changed. It owns the folders that it wrote, and nothing else; a file changed, removed or " +
			"added by hand in one of them shows up in the next plan, and apply puts it right.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Name of the owner, a DNS label. The repository's `.flotilla/<name>` records what it owns.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"fleet": schema.SingleNestedAttribute{
				Required:            true,
				MarkdownDescription: "What `provider::flotilla::fleet` or `control_plane` returned, through a `local`.",
				Attributes: map[string]schema.Attribute{
					"format":      schema.StringAttribute{Optional: true, MarkdownDescription: "Format of the fleet."},
					"environment": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the environment."},
					"model":       schema.StringAttribute{Required: true, MarkdownDescription: "Canonical JSON of the fleet."},
					"config": schema.MapAttribute{
						Required: true, ElementType: types.StringType,
						MarkdownDescription: "JSON of the data of each config container.",
					},
					"manifests": schema.MapAttribute{
						Optional: true, ElementType: types.StringType,
						MarkdownDescription: "JSON of the manifests of each deployment target, by its full name.",
					},
				},
			},
			"gitops_repo": schema.DynamicAttribute{
				Required: true,
				MarkdownDescription: "Where to write: `{url, branch, path}`, such as `flotilla_environment.dev.gitops_repo`. A local path or " +
					"`file://` that does not exist becomes a bare repository. When it changes, the new place is written before the old " +
					"one is cleared.",
			},
			"delivery": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "How to write: `{mode = \"push\"}`, which commits to the branch and is the default, or `{mode = " +
					"\"pull_request\", forge, api_url, branch, title, labels, reviewers, merge}`, which keeps one pull request of this " +
					"assignment up to date. `forge` is `gitea`, `forgejo`, `github` or `gitlab` (unset: by the host's name), `branch` the " +
					"one that is proposed (default `flotilla/<branch>/<path>/<name>`), `merge` is `none` (default), `when_checks_succeed` or `now`, always " +
					"pinned to the commit that was pushed. An open request is pending, not drift.",
			},
			"adopt": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Take over folders that another assignment's records list, or that hold something else and are in " +
					"nobody's records, which is an error otherwise. The plan names them. A folder that is as wanted already, and in " +
					"nobody's records, needs no telling.",
			},
			"protection": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "What a plan may remove, destroy included: `{max_removed, max_removed_percent, allow_empty}`. The default " +
					"is half of all assignments. A percentage, unless 0, never keeps 10 assignments or fewer. A fleet that assigns " +
					"nothing where something is deployed is an error unless `allow_empty` is true. A destroy, and a removal from the " +
					"configuration, are held to what was applied last: apply the change of `protection` first.",
			},
			"on_destroy": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What a destroy does, or a removal from the configuration, or a change of `gitops_repo` at the old place: " +
					"`delete` (default) removes the folders; `keep` leaves them and lets go of them, so that any assignment may have " +
					"them later. Protection does not hold what is kept. Apply it before the destroy.",
			},
			"rollback_to": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Full id of a commit of the branch, as `flotilla_history` gives it: while it is set, the folders are what " +
					"that commit has of this assignment, and the fleet is not looked at. The plan shows what goes back, protection " +
					"holds it, and drift shows against it. Without it the next apply goes forth to what the fleet comes to.",
			},
			"timeouts": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "How long operations may take, connecting included: `{create, read, update, delete}`, each a duration " +
					"such as `\"90s\"` or `\"1h30m\"`. Default: `20m`, and `5m` for `read`, which is also a plan's look at the repository.",
			},
			"commit_message": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "First line of commit messages. Default: how many assignments were added, changed and removed.",
			},
			"deployed": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "By host, the JSON of `{<deployment target>: <git tree id of its folder>}`.",
			},
			"commit": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The last commit of this owner, or the one at which everything was found to be in place.",
			},
			"pull_request": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "URL of the pull request; null with `mode = \"push\"`.",
			},
		},
	}
}

type assignmentModel struct {
	Name          types.String  `tfsdk:"name"`
	Fleet         types.Object  `tfsdk:"fleet"`
	GitopsRepo    types.Dynamic `tfsdk:"gitops_repo"`
	Delivery      types.Dynamic `tfsdk:"delivery"`
	Protection    types.Dynamic `tfsdk:"protection"`
	Adopt         types.Bool    `tfsdk:"adopt"`
	CommitMessage types.String  `tfsdk:"commit_message"`
	RollbackTo    types.String  `tfsdk:"rollback_to"`
	OnDestroy     types.String  `tfsdk:"on_destroy"`
	Timeouts      types.Dynamic `tfsdk:"timeouts"`
	Deployed      types.Map     `tfsdk:"deployed"`
	Commit        types.String  `tfsdk:"commit"`
	PullRequest   types.String  `tfsdk:"pull_request"`
}

// Configure takes over what reaches repositories.
func (r *assignmentResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.connection, _ = req.ProviderData.(*connection)
}

// ValidateConfig checks what needs no other object and no server.
func (r *assignmentResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var model assignmentModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	model.place(&resp.Diagnostics)
	decodeDelivery(model.Delivery, &resp.Diagnostics)
	decodeProtection(model.Protection, &resp.Diagnostics)
	decodeTimeouts(model.Timeouts, &resp.Diagnostics)
	checkOwnerName(model.Name, &resp.Diagnostics)
	checkOnDestroy(model.OnDestroy, &resp.Diagnostics)
	checkRollback(model.RollbackTo, &resp.Diagnostics)
}

// ModifyPlan computes what the repository is to hold, on every plan: the framework would otherwise
// adopt drift of computed attributes silently where nothing in the configuration changed.
func (r *assignmentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior, plan assignmentModel
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	}
	if req.Plan.Raw.IsNull() {
		prior.planDestroy(ctx, &resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := decodeTimeouts(plan.Timeouts, &resp.Diagnostics).during(ctx, forRead)
	defer cancel()
	how := decodeDelivery(plan.Delivery, &resp.Diagnostics)
	plan.PullRequest = types.StringNull()
	if how.pullRequest {
		plan.PullRequest = types.StringUnknown()
	}
	plan.Deployed, plan.Commit = types.MapUnknown(types.StringType), types.StringUnknown()
	defer func() {
		if !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		}
	}()
	place, known := plan.place(&resp.Diagnostics)
	r.checkDelivery(&plan, place, known, &resp.Diagnostics)
	before, wasDeployed := prior.deployment(ctx, &resp.Diagnostics), !req.State.Raw.IsNull()
	wanted, _ := r.wanted(ctx, &plan, place, known, !wasDeployed, before, &resp.Diagnostics)
	if wanted == nil {
		return
	}
	decodeProtection(plan.Protection, &resp.Diagnostics).check(before, wanted, &prior, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.Deployed = deployedValue(wanted)
	moved := wasDeployed && prior.isElsewhere(place, known)
	if wasDeployed && !moved && plan.Deployed.Equal(prior.Deployed) {
		if !r.proposedOtherwise(ctx, &plan, &prior, place, &resp.Diagnostics) {
			plan.Commit = prior.Commit
			if how.pullRequest {
				plan.PullRequest = prior.PullRequest
			}
		}
		return
	}
	if known && (!wasDeployed || moved || hasMore(wanted, before)) {
		if moved {
			before = nil
		}
		r.lookAhead(ctx, &plan, place, wanted, before, !wasDeployed, &resp.Diagnostics)
	}
}

// Create writes what the plan promised.
func (r *assignmentResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan assignmentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := decodeTimeouts(plan.Timeouts, &resp.Diagnostics).during(ctx, forCreate)
	defer cancel()
	_ = r.write(ctx, &plan, nil, &plan, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

// Read compares the owned folders at the tip with those in state, by their tree ids.
func (r *assignmentResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state assignmentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	place, known := state.place(&resp.Diagnostics)
	before := state.deployment(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !known || r.connection == nil || !r.connection.complete {
		return
	}
	ctx, cancel := decodeTimeouts(state.Timeouts, &resp.Diagnostics).during(ctx, forRead)
	defer cancel()
	branch, err := r.connection.pending(ctx, decodeDelivery(state.Delivery, &resp.Diagnostics), place, state.owner(place), state.PullRequest.ValueString())
	if err != nil {
		addRepositoryError(ctx, &resp.Diagnostics, err, false)
		return
	}
	remote := r.connection.remote(place)
	remote.Branch = branch
	err = r.connection.inspect(ctx, remote, state.owner(place), func(view *gitops.View) error {
		deployed, err := view.Deployed(ctx, before)
		if err != nil {
			return err
		}
		// A host whose marker or record is gone is written anew.
		for _, host := range view.Touched(hostsOf(before)) {
			delete(deployed, host)
		}
		state.Deployed = deployedValue(deployed)
		return nil
	})
	if err != nil {
		addRepositoryError(ctx, &resp.Diagnostics, err, false)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Update writes what the plan promised. A new place is written before the old one is cleared.
func (r *assignmentResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var prior, plan assignmentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := decodeTimeouts(plan.Timeouts, &resp.Diagnostics).during(ctx, forUpdate)
	defer cancel()
	from, _ := prior.place(&resp.Diagnostics)
	to, known := plan.place(&resp.Diagnostics)
	before := prior.deployment(ctx, &resp.Diagnostics)
	if !prior.isElsewhere(to, known) {
		// A change of the commit message alone writes nothing, nor does one of delivery unless a request
		// is open: the plan says so.
		var err error
		if plan.Commit.IsUnknown() {
			err = r.write(ctx, &plan, before, &prior, &resp.Diagnostics)
			if !resp.Diagnostics.HasError() {
				r.closeFormer(ctx, &plan, &prior, to, &resp.Diagnostics)
			}
		}
		switch {
		case errors.Is(err, errProposed):
			// A request that is not in the state is not pending: the next plan goes on with it.
			resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("pull_request"), types.StringNull())...)
		case !resp.Diagnostics.HasError():
			resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		}
		return
	}
	_ = r.write(ctx, &plan, nil, &prior, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	prior.OnDestroy = plan.OnDestroy
	former, now := decodeDelivery(prior.Delivery, &resp.Diagnostics), decodeDelivery(plan.Delivery, &resp.Diagnostics)
	if from.URL == to.URL && former.head == now.head {
		former.head = "" // the new place is proposed from there
	}
	if err := r.clear(ctx, &prior, from, before, former); err != nil {
		resp.Diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Folders remain in the former repository",
			sentence(fmt.Sprintf("the new place is written, but the old one could not be cleared: %s", err)))
	}
}

// Delete removes the owned folders, or lets go of them, and leaves everything else, the branch included.
func (r *assignmentResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state assignmentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	place, _ := state.place(&resp.Diagnostics)
	before := state.deployment(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := decodeTimeouts(state.Timeouts, &resp.Diagnostics).during(ctx, forDelete)
	defer cancel()
	if err := r.clear(ctx, &state, place, before, decodeDelivery(state.Delivery, &resp.Diagnostics)); err != nil {
		addRepositoryError(ctx, &resp.Diagnostics, err, false)
	}
}

// write makes the repository hold what the model wants, and sets the computed attributes. prior is the
// model before, for what is said of it. The error of the delivery is among the diagnostics, too.
func (r *assignmentResource) write(
	ctx context.Context, model *assignmentModel, previously gitops.Deployed, prior *assignmentModel, diagnostics *diag.Diagnostics,
) error {
	place, known := model.place(diagnostics)
	if r.connection == nil {
		diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is written.")
		return nil
	}
	var said diag.Diagnostics // the plan has given these warnings
	wanted, tell := r.wanted(ctx, model, place, known, false, previously, &said)
	if diagnostics.Append(said.Errors()...); wanted == nil || !known {
		return nil
	}
	// What was unknown at plan was not held to it there.
	decodeProtection(model.Protection, diagnostics).check(previously, wanted, prior, diagnostics)
	if diagnostics.HasError() {
		return nil
	}
	edit := r.edit(model, place, previously)
	edit.Adopt = model.Adopt.ValueBool()
	tell(&edit)
	remove, err := r.removable(ctx, model, place, edit)
	if err != nil {
		addRepositoryError(ctx, diagnostics, err, false)
		return err
	}
	edit.Remove = remove
	commit, url, err := r.connection.deliver(ctx, decodeDelivery(model.Delivery, diagnostics), place, edit)
	if err != nil {
		addRepositoryError(ctx, diagnostics, err, false)
		return err
	}
	model.Deployed = deployedValue(wanted)
	model.Commit, model.PullRequest = types.StringValue(commit), types.StringPointerValue(orNil(url))
	return nil
}

// clear removes what the model owns at a place, or lets go of it.
func (r *assignmentResource) clear(
	ctx context.Context, model *assignmentModel, place place, deployed gitops.Deployed, how delivery,
) error {
	edit := r.edit(model, place, deployed)
	edit.Keep = model.keeps()
	remove, err := r.removable(ctx, model, place, edit)
	if err != nil {
		return err
	}
	edit.Remove = remove
	_, _, err = r.connection.deliver(ctx, how, place, edit)
	return err
}

// removable is what an edit may remove: what was deployed, and what the owner's records have.
func (r *assignmentResource) removable(ctx context.Context, model *assignmentModel, place place, edit gitops.Edit) (gitops.Deployed, error) {
	remove := gitops.Deployed{}
	add := func(folders gitops.Deployed) {
		for host, targets := range folders {
			if remove[host] == nil {
				remove[host] = map[string]string{}
			}
			maps.Copy(remove[host], targets)
		}
	}
	add(edit.Previously)
	err := r.connection.inspect(ctx, r.connection.remote(place), model.owner(place), func(view *gitops.View) error {
		owned, err := view.Owned(ctx)
		add(owned)
		return err
	})
	return remove, err
}

// hostsOf are the hosts of a deployment, with records that are not known.
func hostsOf(deployed gitops.Deployed) map[string]string {
	hosts := make(map[string]string, len(deployed))
	for host := range deployed {
		hosts[host] = ""
	}
	return hosts
}

// edit is one of the model's owner that wants nothing.
func (r *assignmentResource) edit(model *assignmentModel, place place, previously gitops.Deployed) gitops.Edit {
	return gitops.Edit{
		Owner: model.owner(place), Previously: previously,
		Author: r.connection.author, Subject: model.CommitMessage.ValueString(), Release: r.connection.release,
	}
}

// repo is what templates may know of the place; nil while it is not known.
func (p place) repo(known bool) *render.Repo {
	if !known {
		return nil
	}
	return &render.Repo{URL: p.URL, Branch: p.Branch, Path: p.Path}
}
