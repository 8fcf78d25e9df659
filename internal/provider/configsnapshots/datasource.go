// Package configsnapshots implements flotilla_config_snapshots: the values of each assignment, with their sources.
package configsnapshots

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[configSnapshotsModel]{
		Name: "config_snapshots", Read: read,
		Description: "The values and references to secrets that are hydrated for each assignment, and which config container each " +
			"of them comes from.",
		Attributes: fleetvalue.Narrowed(map[string]schema.Attribute{
			"fleet": fleetvalue.ValuedAttribute(),
			"key": schemas.OptionalText(
				"Only assignments with a value or a reference to a secret at this JSON pointer, such as `/DATABASE_URL`.",
			),
			"snapshots": snapshots.MapAttribute("By the assignment's key, `<host>/<deployment target>`."),
			"advise": schemas.OptionalBool("Whether `advice` is filled in (default `false`). A key that a schema requires and that is missing " +
				"is then no error of this data source: it is part of the advice. It stays an error of the assignment."),
			"advice": advice.MapAttribute(
				"The values that the config schemas of an assignment ask for, and who gives them, by the assignment's key; null without `advise`.",
			),
		}),
	}.New()
}

type configSnapshotsModel struct {
	fleetvalue.Narrowing
	Fleet     types.Object `tfsdk:"fleet"`
	Key       types.String `tfsdk:"key"`
	Snapshots types.Map    `tfsdk:"snapshots"`
	Advise    types.Bool   `tfsdk:"advise"`
	Advice    types.Map    `tfsdk:"advice"`
}

var snapshots = table.Definition[*hydrate.Snapshot]{
	table.Text("version", "Hash of the values, of the references to secrets and of the encrypted files: equal ones, equal version.",
		func(s *hydrate.Snapshot) string { return s.Version }),
	table.Text("json", "Canonical JSON of the values, without references to secrets.", func(s *hydrate.Snapshot) string { return s.JSON }),
	table.ObjectsByName("secrets", "The references to secrets, by key. Where each comes from is in `provenance`.", references,
		(*hydrate.Snapshot).Secrets),
	table.ObjectsByName("provenance", "Where each value and each reference comes from, by its JSON pointer.", origins,
		(*hydrate.Snapshot).Provenance),
}

var references = table.Definition[fleet.SecretReference]{
	table.Text("store", "The store, as the fleet calls it.", func(r fleet.SecretReference) string { return r.Store }),
	table.Text("key", "Key of the secret in the store.", func(r fleet.SecretReference) string { return r.Key }),
	table.TextOrNull("property", "The part of the secret; null for all of it.", func(r fleet.SecretReference) string { return r.Property }),
	table.TextOrNull("version", "Version of the secret; null for the latest.", func(r fleet.SecretReference) string { return r.Version }),
}

var origins = table.Definition[hydrate.Origin]{
	table.Text("container", "Name of the config container that gave the value.", func(o hydrate.Origin) string { return o.Container }),
	table.Texts("overridden", "Names of the config containers that gave it another value and lost, in the order of merging.",
		func(o hydrate.Origin) []string { return o.Overridden }),
}

var advice = table.Definition[*hydrate.Advice]{
	table.ObjectsByName("asked", "The keys that a schema names, also in alternatives and conditions, by their JSON pointers.", askedKeys,
		func(a *hydrate.Advice) map[string]hydrate.Asked { return a.Asked }),
	table.ObjectsByName("missing", "The keys that a schema requires and that have no value, by their JSON pointers.", missingKeys,
		func(a *hydrate.Advice) map[string]string { return a.Missing }),
	table.Texts("unasked", "JSON pointers of the values that no schema asks for; empty where the assignment has no schema.",
		func(a *hydrate.Advice) []string { return a.Unasked }),
}

var askedKeys = table.Definition[hydrate.Asked]{
	table.Texts("schemas", "The schemas that name it, such as `config schema \"net\"`.", func(a hydrate.Asked) []string { return a.Schemas }),
	table.Texts("containers",
		"Names of the config containers that its value comes from, in the order of merging; empty where it has no value.",
		func(a hydrate.Asked) []string { return a.Containers }),
}

var missingKeys = table.Definition[string]{
	table.Text("reason", "Which schema requires it, and why it is not there.", func(reason string) string { return reason }),
}

func read(_ context.Context, c *connection.Connection, m *configSnapshotsModel, diagnostics *diag.Diagnostics) {
	computed := m.compute(c, diagnostics)
	if computed == nil || diagnostics.HasError() {
		return
	}
	scheduled, hydrated := computed.Schedule, computed.Snapshots
	uses, err := hydrate.Uses(hydrated, scheduled.Assignments, m.Key.ValueString())
	if err != nil {
		diagnostics.AddAttributeError(path.Root("key"), "Invalid key", tfvalue.Sentence(err.Error()))
		return
	}
	if m.Check(scheduled, diagnostics); diagnostics.HasError() {
		return
	}
	using := make(map[string]bool, len(uses))
	for _, key := range uses {
		using[key] = true
	}
	selected := map[string]*hydrate.Snapshot{}
	advised, advisor := map[string]*hydrate.Advice{}, hydrated.Advisor()
	for i, assignment := range scheduled.Assignments {
		if key := assignment.Key(); m.Includes(assignment) && (m.Key.IsNull() || using[key]) {
			selected[key] = hydrated.All[i]
			if m.Advise.ValueBool() {
				advised[key] = advisor.ForAssignment(i, assignment)
			}
		}
	}
	m.Snapshots, m.Advice = snapshots.MapOf(selected), types.MapNull(advice.Type())
	if m.Advise.ValueBool() {
		m.Advice = advice.MapOf(advised)
	}
}

// compute only hydrates the fleet for advice, so that missing values are no errors.
func (m *configSnapshotsModel) compute(c *connection.Connection, diagnostics *diag.Diagnostics) *pipeline.Computation {
	value := fleetvalue.DecodeObject(m.Fleet, diagnostics)
	if !m.Advise.ValueBool() {
		return c.Compute(value, diagnostics)
	}
	result, found := pipeline.Hydrate(value)
	fleetvalue.AddErrors(diagnostics, found)
	return result
}
