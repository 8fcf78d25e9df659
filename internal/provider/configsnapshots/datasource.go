// Package configsnapshots is flotilla_config_snapshots: the values of each assignment, and where they come from.
package configsnapshots

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[model]{Name: "config_snapshots", Schema: definition(), Read: read}.New()
}

func definition() schema.Schema {
	attributes := fleetvalue.NarrowingAttributes()
	attributes["fleet"] = fleetvalue.ValuedAttribute()
	attributes["key"] = schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "Only assignments with a value at this JSON pointer, such as `/DATABASE_URL`.",
	}
	attributes["snapshots"] = snapshots.MapAttribute("By the assignment's key, `<host>/<deployment target>`.")
	return schema.Schema{
		MarkdownDescription: "The values that are hydrated for each assignment, and which config container each of them comes from.",
		Attributes:          attributes,
	}
}

type model struct {
	fleetvalue.Narrowing
	Fleet     types.Object `tfsdk:"fleet"`
	Key       types.String `tfsdk:"key"`
	Snapshots types.Map    `tfsdk:"snapshots"`
}

var snapshots = table.Object[*hydrate.Snapshot]{
	table.Text("version", "Hash of the values: equal values, equal version.", func(s *hydrate.Snapshot) string { return s.Version }),
	table.Text("json", "Canonical JSON of the values.", func(s *hydrate.Snapshot) string { return s.JSON }),
	table.ObjectsByName("provenance", "Where each value comes from, by its JSON pointer.", origins, (*hydrate.Snapshot).Provenance),
}

var origins = table.Object[hydrate.Origin]{
	table.Text("container", "Name of the config container that gave the value.", func(o hydrate.Origin) string { return o.Container }),
	table.Texts("overridden", "Names of the config containers that gave it another value and lost, in the order of merging.",
		func(o hydrate.Origin) []string { return o.Overridden }),
}

// read schedules and hydrates the fleet.
func read(_ context.Context, c *connection.Connection, m *model, diagnostics *diag.Diagnostics) {
	computed := c.Compute(fleetvalue.Of(m.Fleet, diagnostics), diagnostics)
	if computed == nil || diagnostics.HasError() {
		return
	}
	scheduled, hydrated := computed.Schedule, computed.Snapshots
	uses, err := hydrate.Uses(hydrated, scheduled.Assignments, m.Key.ValueString())
	if err != nil {
		diagnostics.AddAttributeError(path.Root("key"), "Invalid key", tfvalue.Sentence(err.Error()))
		return
	}
	if m.Check(computed.Fleet, diagnostics); diagnostics.HasError() {
		return
	}
	using := make(map[string]bool, len(uses))
	for _, key := range uses {
		using[key] = true
	}
	selected := map[string]*hydrate.Snapshot{}
	for i, assignment := range scheduled.Assignments {
		if key := assignment.Key(); m.Includes(assignment) && (m.Key.IsNull() || using[key]) {
			selected[key] = hydrated.Snapshots[i]
		}
	}
	m.Snapshots = snapshots.MapOf(selected)
}
