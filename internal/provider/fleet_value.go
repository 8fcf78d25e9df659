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
	"environment": types.StringType,
	"model":       types.StringType,
	"config":      types.MapType{ElemType: types.StringType},
}

// fleetReturn is how functions declare that.
func fleetReturn() function.Return {
	return function.ObjectReturn{AttributeTypes: fleetTypes}
}

// setFleet returns a decoded fleet from a function: what is not certain yet is unknown, and an
// unknown value of a config container is only that container's entry.
func setFleet(ctx context.Context, decoded *fleet.Decoded, result *function.ResultData) *function.FuncError {
	environment, model := types.StringUnknown(), types.StringUnknown()
	if decoded.EnvironmentKnown {
		environment = types.StringValue(decoded.Environment)
	}
	if decoded.Known {
		text, err := decoded.Fleet.Model()
		if err != nil {
			return function.NewFuncError(err.Error())
		}
		model = types.StringValue(text)
	}
	config := types.MapUnknown(types.StringType)
	if decoded.ContainersKnown {
		entries := make(map[string]attr.Value, len(decoded.Config)+len(decoded.Pending))
		for name, text := range decoded.Config {
			entries[name] = types.StringValue(text)
		}
		for _, name := range decoded.Pending {
			entries[name] = types.StringUnknown()
		}
		config = types.MapValueMust(types.StringType, entries)
	}
	value, diags := types.ObjectValue(fleetTypes, map[string]attr.Value{
		"environment": environment, "model": model, "config": config,
	})
	if diags.HasError() {
		return function.FuncErrorFromDiags(ctx, diags)
	}
	return result.Set(ctx, value)
}
