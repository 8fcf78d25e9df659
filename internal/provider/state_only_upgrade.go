package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// labelsVersion is the version of the state of resources with labels. In version 0 these were a map of texts.
const labelsVersion = 1

func (r stateOnly) hasLabels() bool { return r.schema.Attributes["labels"] != nil }

// UpgradeState reads states of version 0. Labels become the object that a configuration has, so that the next plan
// finds no difference.
func (r stateOnly) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	if !r.hasLabels() {
		return nil
	}
	prior := r.schema
	prior.Attributes = maps.Clone(r.schema.Attributes)
	prior.Attributes["labels"] = schema.MapAttribute{Optional: true, ElementType: types.StringType}
	return map[int64]resource.StateUpgrader{0: {PriorSchema: &prior, StateUpgrader: r.upgradeV0}}
}

func (r stateOnly) upgradeV0(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
	value, err := req.State.Schema.Type().ValueFromTerraform(ctx, req.State.Raw)
	was, isObject := value.(basetypes.ObjectValue)
	if err != nil || !isObject {
		resp.Diagnostics.AddError("Invalid state", "The state of version 0 does not have the attributes of the resource.")
		return
	}
	attributes := was.Attributes()
	labels := types.DynamicNull()
	if texts, isMap := attributes["labels"].(basetypes.MapValue); isMap && !texts.IsNull() {
		elements := texts.Elements()
		typesOf := make(map[string]attr.Type, len(elements))
		for name := range elements {
			typesOf[name] = types.StringType
		}
		object, diags := types.ObjectValue(typesOf, elements)
		resp.Diagnostics.Append(diags...)
		labels = types.DynamicValue(object)
	}
	attributes["labels"] = labels
	resp.State.Raw = r.raw(ctx, attributes, &resp.Diagnostics)
}
