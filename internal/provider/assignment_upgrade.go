package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// assignmentVersion is the version of the state. Version 0 had the fleet in it, and in deployed the trees of all
// folders.
const assignmentVersion = 1

// UpgradeState reads states of earlier versions. They have no private state; the refresh that follows reads its content
// from the repository's records.
func (r *assignmentResource) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	prior := assignmentSchemaV0()
	return map[int64]resource.StateUpgrader{0: {PriorSchema: &prior, StateUpgrader: upgradeAssignmentV0}}
}

// assignmentSchemaV0 is the schema of states of version 0. It must not change.
func assignmentSchemaV0() schema.Schema {
	text, object := schema.StringAttribute{Optional: true}, schema.DynamicAttribute{Optional: true}
	texts := schema.MapAttribute{Optional: true, ElementType: types.StringType}
	return schema.Schema{Attributes: map[string]schema.Attribute{
		"name": text,
		"fleet": schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{
			"environment": text, "model": text, "config": texts,
		}},
		"gitops_repo": object, "delivery": object, "adopt": schema.BoolAttribute{Optional: true}, "protection": object,
		"on_destroy": text, "rollback_to": text, "timeouts": object, "commit_message": text,
		"deployed": texts, "commit": text, "pull_request": text,
	}}
}

type assignmentModelV0 struct {
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

func upgradeAssignmentV0(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
	var was assignmentModelV0
	resp.Diagnostics.Append(req.State.Get(ctx, &was)...)
	texts := map[string]types.String{}
	if !was.Deployed.IsNull() {
		resp.Diagnostics.Append(was.Deployed.ElementsAs(ctx, &texts, false)...)
	}
	trees := rollout.Trees{}
	for host, text := range texts {
		folders, err := fleet.ParseJSON(text.ValueString())
		object, ok := folders.(map[string]any)
		if err != nil || !ok {
			resp.Diagnostics.AddAttributeError(path.Root("deployed").AtMapKey(host), "Invalid state",
				"The value must be the JSON of an object: {<deployment target>: <git tree id>}.")
			continue
		}
		trees[host] = map[string]string{}
		for target, tree := range object {
			trees[host][target], _ = tree.(string)
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &assignmentModel{
		Name: was.Name, Fleet: types.DynamicNull(), GitopsRepo: was.GitopsRepo, Delivery: was.Delivery, Protection: was.Protection,
		Adopt: was.Adopt, CommitMessage: was.CommitMessage, RollbackTo: was.RollbackTo, OnDestroy: was.OnDestroy, Timeouts: was.Timeouts,
		Changes: linesValue(nil), Content: contentValue(trees), Commit: was.Commit, PullRequest: was.PullRequest,
		RollingOut: types.MapNull(types.StringType),
	})...)
}
