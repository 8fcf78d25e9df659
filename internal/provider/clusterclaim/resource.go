// Package clusterclaim is flotilla_cluster_claim: clusters of a pool, recorded in a GitOps repository.
package clusterclaim

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
)

var (
	_ resource.Resource                   = &clusterClaimResource{}
	_ resource.ResourceWithConfigure      = &clusterClaimResource{}
	_ resource.ResourceWithValidateConfig = &clusterClaimResource{}
	_ resource.ResourceWithModifyPlan     = &clusterClaimResource{}
	_ resource.ResourceWithImportState    = &clusterClaimResource{}
)

// clusterClaimResource takes clusters of a pool, and records them in a GitOps repository.
type clusterClaimResource struct {
	connection *connection.Connection
}

func New() resource.Resource { return &clusterClaimResource{} }

// Metadata names the resource.
func (r *clusterClaimResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster_claim"
}

// Schema keeps the pool and the fleet out of the state, since a change of them alone changes nothing.
func (r *clusterClaimResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Takes clusters of a pool that are not claimed yet. Its clusters are recorded in the GitOps repository, in a commit " +
			"that is pushed as a compare-and-swap, so that no two claims at one location (repository, branch and path) ever have the same cluster, " +
			"whichever states they are in. A destroy releases them. `flotilla_inventory` lists all claims.\n\n" +
			"A claim keeps what it has, also when the pool does not select a cluster any more. Wanting more, it takes the first free clusters by " +
			"name; wanting fewer, it releases those that it took last. A cluster that has left the fleet is released, which the plan says, and " +
			"another one replaces it.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "Name of the claim at its location, a DNS label. A new name is a handover within one commit: the claim keeps its " +
					"clusters.",
			},
			"pool": schema.DynamicAttribute{
				Required: true, WriteOnly: true,
				MarkdownDescription: "Which clusters of the fleet may be taken: a selector, `{match_labels, match_expressions, expression}`, over " +
					"their labels, those of their cluster types, and `environment`, `cluster-type` and `cluster`; `{}` is all. It is write-only: " +
					"a change of it takes nothing from a claim that has enough.",
			},
			"number": schema.NumberAttribute{
				Required:            true,
				MarkdownDescription: "How many clusters the claim is to have. 0 keeps the claim and releases its clusters.",
			},
			"fleet": schema.DynamicAttribute{
				Required: true, WriteOnly: true,
				MarkdownDescription: "What `provider::flotilla::fleet` or `control_plane` returned for the clusters of the pool, through a `local`. " +
					"It is write-only. It cannot be a fleet that is made of `clusters` of this claim, which would be a cycle: see the example.",
			},
			"gitops_repo": schema.DynamicAttribute{
				Required: true,
				MarkdownDescription: "Where claims are recorded: `{url, branch, path}`. Claims of one pool must be at one location: those at another know " +
					"nothing of them. Commits are pushed to the branch, never by pull request, which could not be a compare-and-swap: where " +
					"the branch is protected, give claims another one. At a different location the claim is made again, and the old one is released.",
			},
			"adopt": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Take over the record of a claim of this name that this state does not know, which is an error otherwise: that of a " +
					"state that was lost, or, by mistake, that of another state, whose next plan then reports it. A replacement with " +
					"`create_before_destroy` needs it, too.",
			},
			"commit_message": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "First line of commit messages. Default: how many clusters were taken and released.",
			},
			"timeouts": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "How long operations may take, connecting included: `{create, read, update, delete}`, each a duration " +
					"such as `\"90s\"` or `\"1h30m\"`. Default: `20m`, and `5m` for `read`, which also bounds how long a plan reads the repository.",
			},
			"clusters": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Names of the clusters, in the order in which they were taken. A plan knows them unless it takes some: which ones " +
					"are free is decided when the record is pushed, so that a plan never promises what others take in the meantime.",
			},
			"commit": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The last commit of this claim, or the one at which its record was found as wanted.",
			},
		},
	}
}

type claimModel struct {
	Name          types.String  `tfsdk:"name"`
	Pool          types.Dynamic `tfsdk:"pool"`
	Number        types.Number  `tfsdk:"number"`
	Fleet         types.Dynamic `tfsdk:"fleet"`
	GitopsRepo    types.Dynamic `tfsdk:"gitops_repo"`
	Adopt         types.Bool    `tfsdk:"adopt"`
	CommitMessage types.String  `tfsdk:"commit_message"`
	Timeouts      types.Dynamic `tfsdk:"timeouts"`
	Clusters      types.List    `tfsdk:"clusters"`
	Commit        types.String  `tfsdk:"commit"`
}

// Configure takes over the provider's connection.
func (r *clusterClaimResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.connection, _ = req.ProviderData.(*connection.Connection)
}

// ValidateConfig checks what needs no other object and no server.
func (r *clusterClaimResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var model claimModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	t := &claimTask{model: &model, diagnostics: &resp.Diagnostics}
	t.decode()
}

// ModifyPlan decides which clusters stay, on every plan, and finds what would make the apply fail.
func (r *clusterClaimResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, prior claimModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("pool"), &plan.Pool)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("fleet"), &plan.Fleet)...)
	t := &claimTask{connection: r.connection, model: &plan, diagnostics: &resp.Diagnostics}
	private := loadClaim(ctx, req.Private, &resp.Diagnostics)
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
		t.prior, t.private = &prior, private
	} else if private != nil {
		t.replaced = []string{private.Holder} // known only from the private state of the first plan
	}
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := timeouts.Decode(plan.Timeouts, &resp.Diagnostics).During(ctx, timeouts.Read)
	defer cancel()
	t.plan(ctx)
	if resp.Diagnostics.HasError() {
		return
	}
	plan.Pool, plan.Fleet = types.DynamicNull(), types.DynamicNull()
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if t.prior == nil && len(t.replaced) > 0 && resp.Private != nil {
		saveReplaced(ctx, t.replaced, resp.Private, &resp.Diagnostics)
	}
}

// Create claims the clusters.
func (r *clusterClaimResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan claimModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("pool"), &plan.Pool)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("fleet"), &plan.Fleet)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := timeouts.Decode(plan.Timeouts, &resp.Diagnostics).During(ctx, timeouts.Create)
	defer cancel()
	t := &claimTask{
		connection: r.connection, model: &plan, diagnostics: &resp.Diagnostics,
		replaced: takeReplaced(ctx, resp.Private, &resp.Diagnostics), holder: delivery.NewHolder(),
	}
	err := t.apply(ctx)
	if errors.Is(err, git.ErrUnknown) {
		// The record may exist: a tainted object is released before it is created again.
		plan.Clusters, plan.Commit = tfvalue.Texts(nil), types.StringNull()
	} else if resp.Diagnostics.HasError() {
		return
	}
	plan.Pool, plan.Fleet = types.DynamicNull(), types.DynamicNull()
	t.after.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Read compares the record at the tip with the one that was written.
func (r *clusterClaimResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state claimModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	private := loadClaim(ctx, req.Private, &resp.Diagnostics)
	at, ok := repository.DecodeLocation(state.GitopsRepo, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !ok || private == nil || !r.connection.CanAsk() {
		return
	}
	ctx, cancel := timeouts.Decode(state.Timeouts, &resp.Diagnostics).During(ctx, timeouts.Read)
	defer cancel()
	seen, err := r.connection.Delivery.RefreshClaim(ctx, private.known(delivery.Claim{Location: at, Name: state.Name.ValueString()}))
	if err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	if seen.Gone {
		resp.Diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Repository is gone", fmt.Sprintf(
			"There is no repository at %q any more. The next apply records the claim again, if the repository exists by then.", at.URL))
	}
	state.Clusters = tfvalue.Texts(seen.Clusters)
	private.see(seen)
	private.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Update writes what was planned.
func (r *clusterClaimResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var prior, plan claimModel
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("pool"), &plan.Pool)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("fleet"), &plan.Fleet)...)
	private := loadClaim(ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := timeouts.Decode(plan.Timeouts, &resp.Diagnostics).During(ctx, timeouts.Update)
	defer cancel()
	// A change of attributes that are not in the record writes nothing, as planned.
	if plan.Commit.IsUnknown() {
		t := &claimTask{connection: r.connection, model: &plan, prior: &prior, private: private, diagnostics: &resp.Diagnostics}
		_ = t.apply(ctx) // it is among the diagnostics
		if resp.Diagnostics.HasError() {
			return
		}
		t.after.save(ctx, resp.Private, &resp.Diagnostics)
	}
	plan.Pool, plan.Fleet = types.DynamicNull(), types.DynamicNull()
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Delete releases the clusters, unless another claim has taken over the record.
func (r *clusterClaimResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state claimModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	at, ok := repository.DecodeLocation(state.GitopsRepo, &resp.Diagnostics)
	private := loadClaim(ctx, req.Private, &resp.Diagnostics)
	// Terraform destroys an object that it replaces with the private state of the plan for the new one.
	holders := append(takeReplaced(ctx, resp.Private, &resp.Diagnostics), "")
	if resp.Diagnostics.HasError() || !ok || r.connection == nil {
		return
	}
	if private != nil {
		holders = append(holders, private.Holder)
	}
	ctx, cancel := timeouts.Decode(state.Timeouts, &resp.Diagnostics).During(ctx, timeouts.Delete)
	defer cancel()
	foreign, err := r.connection.Delivery.ReleaseClaim(ctx, delivery.Claim{Location: at, Name: state.Name.ValueString()}, holders, state.CommitMessage.ValueString())
	switch {
	case err != nil:
		addClaimError(ctx, &resp.Diagnostics, err)
	case foreign:
		resp.Diagnostics.AddAttributeWarning(path.Root("name"), "Claim belongs to another holder", fmt.Sprintf(
			"The record of the claim %q belongs to another object now, and is not changed.", state.Name.ValueString()))
	}
}

// ImportState takes "<url>#<branch>:<path>:<name>", and reads what the record of that name says.
func (r *clusterClaimResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	repo, at, name, ok := repository.ParseImportID(req.ID, &resp.Diagnostics)
	if !ok {
		return
	}
	model := claimModel{
		Name: types.StringValue(name), GitopsRepo: repo, Pool: types.DynamicNull(), Fleet: types.DynamicNull(), Adopt: types.BoolNull(),
		CommitMessage: types.StringNull(), Timeouts: types.DynamicNull(),
	}
	checkClaimName(model.Name, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := timeouts.Default.During(ctx, timeouts.Read)
	defer cancel()
	found, err := r.connection.Delivery.Claims(ctx, at)
	if err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	unsigned, err := r.connection.Delivery.UnsignedClaims(ctx, at, name)
	if err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	if commit := unsigned[name]; commit != "" {
		resp.Diagnostics.AddError("Record is not signed by a known key", tfvalue.Sentence(commit)+" Revert that commit, or add the key to allowed_signers.")
		return
	}
	for _, claim := range found.Claims {
		if claim.Name != name {
			continue
		}
		model.Number, model.Clusters, model.Commit = types.NumberValue(new(big.Float).SetInt64(int64(len(claim.Clusters)))), tfvalue.Texts(claim.Names()), types.StringValue(found.Commit)
		rememberClaim(claim).save(ctx, resp.Private, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
		return
	}
	resp.Diagnostics.AddError("Nothing to import", tfvalue.Sentence(fmt.Sprintf(
		"the repository has no record of a claim %q at path %q of branch %q that can be read", name, at.Path, at.Branch)))
}

// rememberClaim is the private state of a claim after an import.
func rememberClaim(claim gitops.Claim) *claimPrivate {
	return &claimPrivate{Holder: claim.Holder, Record: claim.Record, Clusters: claim.Names(), Environment: claim.Environment}
}
