package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// fleetTypes are the attributes of what provider::flotilla::fleet and control_plane return.
var fleetTypes = map[string]attr.Type{
	"format":      types.StringType,
	"environment": types.StringType,
	"model":       types.StringType,
	"config":      types.MapType{ElemType: types.StringType},
	"manifests":   types.MapType{ElemType: types.StringType},
	"constraints": types.MapType{ElemType: types.StringType},
}

// fleetReturn is that type as the return value of a function.
func fleetReturn() function.Return {
	return function.ObjectReturn{AttributeTypes: fleetTypes}
}

// setFleet returns a decoded fleet from a function. What may still change is unknown. An unknown value of a config
// container, of manifests or of a constraint makes only that object's entry unknown.
func setFleet(ctx context.Context, decoded *fleet.Decoded, result *function.ResultData) *function.FuncError {
	known, err := decoded.Value()
	if err != nil {
		return function.NewFuncError(err.Error())
	}
	environment, model := types.StringUnknown(), types.StringUnknown()
	if decoded.EnvironmentKnown {
		environment = types.StringValue(known.Environment)
	}
	if known.Known() {
		model = types.StringValue(known.Model)
	}
	value, diags := types.ObjectValue(fleetTypes, map[string]attr.Value{
		"format": types.StringValue(known.Format), "environment": environment, "model": model,
		"config":      entriesOf(known.Config, decoded.Pending, decoded.ContainersKnown),
		"manifests":   entriesOf(known.Manifests, decoded.PendingManifests, decoded.TargetsKnown),
		"constraints": entriesOf(known.Constraints, decoded.PendingConstraints, decoded.ConstraintsKnown),
	})
	if diags.HasError() {
		return function.FuncErrorFromDiags(ctx, diags)
	}
	return result.Set(ctx, value)
}

// entriesOf is a map with an entry for each object. Pending entries are unknown. Where there may be other objects, the
// whole map is unknown.
func entriesOf(known map[string]string, pending []string, complete bool) types.Map {
	if !complete {
		return types.MapUnknown(types.StringType)
	}
	entries := make(map[string]attr.Value, len(known)+len(pending))
	for name, text := range known {
		entries[name] = types.StringValue(text)
	}
	for _, name := range pending {
		entries[name] = types.StringUnknown()
	}
	return types.MapValueMust(types.StringType, entries)
}

// knownEntries returns the entries that are known.
func knownEntries(entries map[string]types.String) map[string]string {
	known := make(map[string]string, len(entries))
	for name, text := range entries {
		if !text.IsUnknown() && !text.IsNull() {
			known[name] = text.ValueString()
		}
	}
	return known
}
