// Package configsnapshots is flotilla_config_snapshots: the values of each assignment, and where they come from.
package configsnapshots

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

var (
	_ datasource.DataSource              = &configSnapshotsDataSource{}
	_ datasource.DataSourceWithConfigure = &configSnapshotsDataSource{}
)

type configSnapshotsDataSource struct{ connection.DataSource }

func New() datasource.DataSource { return &configSnapshotsDataSource{} }

// Metadata names the data source.
func (*configSnapshotsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_config_snapshots"
}

// Schema is the fleet, what to narrow it by, and the snapshots.
func (*configSnapshotsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := fleetvalue.NarrowingAttributes()
	attributes["fleet"] = fleetvalue.ValuedAttribute()
	attributes["key"] = schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "Only assignments with a value at this JSON pointer, such as `/DATABASE_URL`.",
	}
	attributes["snapshots"] = schema.MapNestedAttribute{
		Computed:            true,
		MarkdownDescription: "By the assignment's key, `<host>/<deployment target>`.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"version": schema.StringAttribute{Computed: true, MarkdownDescription: "Hash of the values: equal values, equal version."},
			"json":    schema.StringAttribute{Computed: true, MarkdownDescription: "Canonical JSON of the values."},
			"provenance": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Where each value comes from, by its JSON pointer.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"container": schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the config container that gave the value."},
					"overridden": schema.ListAttribute{
						Computed: true, ElementType: types.StringType,
						MarkdownDescription: "Names of the config containers that gave it another value and lost, in the order of merging.",
					},
				}},
			},
		}},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The values that are hydrated for each assignment, and which config container each of them comes from.",
		Attributes:          attributes,
	}
}

type configSnapshotsModel struct {
	Fleet            fleetModel               `tfsdk:"fleet"`
	ClusterType      types.String             `tfsdk:"cluster_type"`
	Cluster          types.String             `tfsdk:"cluster"`
	DeploymentTarget types.String             `tfsdk:"deployment_target"`
	Key              types.String             `tfsdk:"key"`
	Snapshots        map[string]snapshotModel `tfsdk:"snapshots"`
}

type fleetModel struct {
	Format      types.String        `tfsdk:"format"`
	Environment types.String        `tfsdk:"environment"`
	Model       types.String        `tfsdk:"model"`
	Config      *fleetvalue.Entries `tfsdk:"config"`
}

func (m fleetModel) value(diagnostics *diag.Diagnostics) fleet.Value {
	return fleet.Value{
		Format: m.Format.ValueString(), Environment: m.Environment.ValueString(), Model: m.Model.ValueString(),
		Config: m.Config.Read(diagnostics),
	}
}

type snapshotModel struct {
	Version    string                 `tfsdk:"version"`
	JSON       string                 `tfsdk:"json"`
	Provenance map[string]originModel `tfsdk:"provenance"`
}

type originModel struct {
	Container  string   `tfsdk:"container"`
	Overridden []string `tfsdk:"overridden"`
}

// Read schedules and hydrates the fleet.
func (d *configSnapshotsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model configSnapshotsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	computed := d.Connection.Compute(model.Fleet.value(&resp.Diagnostics), &resp.Diagnostics)
	if computed == nil || resp.Diagnostics.HasError() {
		return
	}
	scheduled, hydrated := computed.Schedule, computed.Snapshots
	using, err := hydrate.Uses(hydrated, scheduled.Assignments, model.Key.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("key"), "Invalid key", tfvalue.Sentence(err.Error()))
		return
	}
	uses := make(map[string]bool, len(using))
	for _, key := range using {
		uses[key] = true
	}
	wanted := fleetvalue.Narrowing{ClusterType: model.ClusterType, Cluster: model.Cluster, DeploymentTarget: model.DeploymentTarget}
	if wanted.Check(computed.Fleet, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	model.Snapshots = map[string]snapshotModel{}
	for i, assignment := range scheduled.Assignments {
		if wanted.Includes(assignment) && (model.Key.IsNull() || uses[assignment.Key()]) {
			model.add(assignment.Key(), hydrated.Snapshots[i])
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (m *configSnapshotsModel) add(key string, snapshot *hydrate.Snapshot) {
	origins := snapshot.Provenance()
	provenance := make(map[string]originModel, len(origins))
	for pointer, origin := range origins {
		provenance[pointer] = originModel{Container: origin.Container, Overridden: tfvalue.OrEmpty(origin.Overridden)}
	}
	m.Snapshots[key] = snapshotModel{Version: snapshot.Version, JSON: snapshot.JSON, Provenance: provenance}
}
