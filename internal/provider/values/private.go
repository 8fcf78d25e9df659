package values

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

const memoryEntry = "rollout"

// load returns nil if there is no private state, or none that can be read: then the state has the values of clusters.
func load(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *rollout.Memory {
	return privatestate.LoadSealed[rollout.Memory](ctx, memoryEntry, "what was given to clusters is taken from values instead",
		private, diagnostics)
}

// importState takes values as JSON, so that a rollout with a lost state can go on.
func importState(ctx context.Context, _ *connection.Connection, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	given, err := parseID(req.ID)
	if err != nil {
		resp.Diagnostics.AddError("Invalid import of rollout", fmt.Sprintf(
			"The import ID must be the values as JSON, by cluster, such as {\"edge-1\":\"1.30\"}: %s.", err))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("values"), types.DynamicValue(mapOf(ctx, given)))...)
}

func parseID(id string) (map[string]attr.Value, error) {
	value, err := fleet.ParseJSON(id)
	if err != nil {
		return nil, err
	}
	given, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	elements := make(map[string]attr.Value, len(given))
	for _, cluster := range slices.Sorted(maps.Keys(given)) {
		if given[cluster] == nil {
			return nil, fmt.Errorf("the value of %q is null, and a cluster always has a value", cluster)
		}
		if elements[cluster], err = tfvalue.Infer(given[cluster]); err == nil {
			_, err = fleet.CanonicalJSON(given[cluster]) // a number may be too large
		}
		if err != nil {
			return nil, fmt.Errorf("the value of %q: %w", cluster, err)
		}
	}
	return elements, nil
}
