package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
					"environment": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the environment."},
					"model":       schema.StringAttribute{Required: true, MarkdownDescription: "Canonical JSON of the fleet."},
					"config": schema.MapAttribute{
						Required: true, ElementType: types.StringType,
						MarkdownDescription: "JSON of the data of each config container.",
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
					"one that is proposed (default `flotilla/<name>`), `merge` is `none` (default), `when_checks_succeed` or `now`, always " +
					"pinned to the commit that was pushed. An open request is pending, not drift.",
			},
			"adopt": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Take over folders that another assignment's records list, which is an error otherwise.",
			},
			"protection": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "What a plan may remove, destroy included: `{max_removed, max_removed_percent, allow_empty}`. The default " +
					"is half of all assignments. A percentage, unless 0, never keeps 10 assignments or fewer. A fleet that assigns " +
					"nothing where something is deployed is an error unless `allow_empty` is true.",
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
	checkOwnerName(model.Name, &resp.Diagnostics)
}

// ModifyPlan computes what the repository is to hold, on every plan: the framework would otherwise
// adopt drift of computed attributes silently where nothing in the configuration changed.
func (r *assignmentResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior, plan assignmentModel
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	}
	if req.Plan.Raw.IsNull() {
		prior.protectDestroy(&resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
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
	outcome := plan.outcome(ctx, &resp.Diagnostics)
	if outcome == nil {
		return
	}
	outcome.warn(&resp.Diagnostics)
	before, wasDeployed := prior.deployment(ctx, &resp.Diagnostics), !req.State.Raw.IsNull()
	trees := outcome.trees(place.repo(known), before, &resp.Diagnostics)
	wanted := outcome.wanted(trees)
	limits := decodeProtection(plan.Protection, &resp.Diagnostics)
	limits.check(before, wanted, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.Deployed = deployedValue(wanted)
	moved := wasDeployed && prior.isElsewhere(place, known)
	if wasDeployed && !moved && plan.Deployed.Equal(prior.Deployed) {
		plan.Commit = prior.Commit
		if how.pullRequest {
			plan.PullRequest = prior.PullRequest
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

// lookAhead finds at plan what would make the apply fail: a repository that cannot be reached, or a
// folder that is somebody else's.
func (r *assignmentResource) lookAhead(ctx context.Context, plan *assignmentModel, place place, wanted, before gitops.Deployed, creates bool, diagnostics *diag.Diagnostics) {
	if r.connection == nil || !r.connection.complete {
		return
	}
	view, err := r.connection.inspect(ctx, r.connection.remote(place), plan.owner(place))
	if err != nil {
		addRepositoryError(diagnostics, err, creates)
		return
	}
	if view.Missing {
		diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Repository does not exist yet",
			"There is no repository at this path: apply creates a bare one, unless something else does before.")
	}
	conflicts, err := view.Conflicts(ctx, wanted, before)
	if err != nil {
		addRepositoryError(diagnostics, err, creates)
	}
	addLimited(diagnostics, conflicts, func(conflict gitops.Conflict) {
		if plan.Adopt.ValueBool() && conflict.Owner != "" {
			diagnostics.AddAttributeWarning(path.Root("adopt"), "Folder is taken over", sentence(conflict.String()))
			return
		}
		diagnostics.AddAttributeError(path.Root("gitops_repo"), "Folder belongs to somebody else", sentence(conflict.String()))
	})
}

// Create writes what the plan promised.
func (r *assignmentResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan assignmentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.write(ctx, &plan, nil, &resp.Diagnostics)
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
	branch, err := r.connection.pending(ctx, decodeDelivery(state.Delivery, &resp.Diagnostics), place, state.owner(place))
	if err != nil {
		addRepositoryError(&resp.Diagnostics, err, false)
		return
	}
	remote := r.connection.remote(place)
	remote.Branch = branch
	view, err := r.connection.inspect(ctx, remote, state.owner(place))
	if err != nil {
		addRepositoryError(&resp.Diagnostics, err, false)
		return
	}
	state.Deployed = deployedValue(view.Deployed(before))
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
	from, _ := prior.place(&resp.Diagnostics)
	to, known := plan.place(&resp.Diagnostics)
	before := prior.deployment(ctx, &resp.Diagnostics)
	if !prior.isElsewhere(to, known) {
		// A change of the commit message or of delivery alone writes nothing: the plan says so.
		if plan.Commit.IsUnknown() {
			r.write(ctx, &plan, before, &resp.Diagnostics)
		}
		if !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		}
		return
	}
	r.write(ctx, &plan, nil, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	if err := r.clear(ctx, &prior, from, before); err != nil {
		resp.Diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Folders remain in the former repository",
			sentence(fmt.Sprintf("the new place is written, but the old one could not be cleared: %s", err)))
	}
}

// Delete removes the owned folders, and leaves everything else, the branch included.
func (r *assignmentResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state assignmentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	place, _ := state.place(&resp.Diagnostics)
	before := state.deployment(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.clear(ctx, &state, place, before); err != nil {
		addRepositoryError(&resp.Diagnostics, err, false)
	}
}

// write makes the repository hold what the model's fleet comes to, and sets the computed attributes.
func (r *assignmentResource) write(ctx context.Context, model *assignmentModel, previously gitops.Deployed, diagnostics *diag.Diagnostics) {
	place, known := model.place(diagnostics)
	outcome := model.outcome(ctx, diagnostics)
	if outcome == nil || !known {
		return
	}
	if r.connection == nil {
		diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is written.")
		return
	}
	repo := place.repo(true)
	trees := outcome.trees(repo, previously, diagnostics)
	if diagnostics.HasError() {
		return
	}
	commit, url, err := r.connection.deliver(ctx, decodeDelivery(model.Delivery, diagnostics), place, gitops.Edit{
		Owner: model.owner(place), Hosts: outcome.edit(trees, repo), Previously: previously, Adopt: model.Adopt.ValueBool(),
		Author: r.connection.author, Subject: model.CommitMessage.ValueString(), Release: r.connection.release,
	})
	if err != nil {
		addRepositoryError(diagnostics, err, false)
		return
	}
	model.Deployed = deployedValue(outcome.wanted(trees))
	model.Commit, model.PullRequest = types.StringValue(commit), types.StringPointerValue(orNil(url))
}

// clear removes what the model owns at a place.
func (r *assignmentResource) clear(ctx context.Context, model *assignmentModel, place place, deployed gitops.Deployed) error {
	var ignored diag.Diagnostics // what is in the state was checked when it got there
	_, _, err := r.connection.deliver(ctx, decodeDelivery(model.Delivery, &ignored), place, gitops.Edit{
		Owner: model.owner(place), Previously: deployed,
		Author: r.connection.author, Subject: model.CommitMessage.ValueString(), Release: r.connection.release,
	})
	return err
}

// hasMore says whether wanted has a folder that deployed has not.
func hasMore(wanted, deployed gitops.Deployed) bool {
	for _, host := range slices.Sorted(maps.Keys(wanted)) {
		for target := range wanted[host] {
			if _, ok := deployed[host][target]; !ok {
				return true
			}
		}
	}
	return false
}

// repo is what templates may know of the place; nil while it is not known.
func (p place) repo(known bool) *render.Repo {
	if !known {
		return nil
	}
	return &render.Repo{URL: p.URL, Branch: p.Branch, Path: p.Path}
}
