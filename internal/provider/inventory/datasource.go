// Package inventory is flotilla_inventory: which assignments and claims a branch has, of all owners.
package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/largevalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/wire"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

var (
	_ datasource.DataSource              = &inventoryDataSource{}
	_ datasource.DataSourceWithConfigure = &inventoryDataSource{}
)

type inventoryDataSource struct{ connection.DataSource }

func New() datasource.DataSource { return &inventoryDataSource{} }

// defaultInventory is how many assignments are listed: more than the reference fleet has.
const defaultInventory = 25_000

// Metadata names the data source.
func (d *inventoryDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_inventory"
}

// Schema is the location, what to narrow it by, and the assignments.
func (d *inventoryDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	only := func(what string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: what}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Which assignments and claims a branch of a GitOps repository has, of all owners (`flotilla_assignment` resources, in whichever " +
			"state), read from their records: what runs on a cluster, where a workload runs, since when; and " +
			"which clusters are claimed. No cluster is asked, and only the records are read. With `git.allowed_signers` of the provider, records that none of " +
			"these keys has signed are named in a warning, with their commits.",
		Attributes: map[string]schema.Attribute{
			"gitops_repo": schema.DynamicAttribute{
				Required: true,
				MarkdownDescription: fmt.Sprintf("Where to look: `{url, branch, path}`. Owners are found at the path and up to %d folders below it; "+
					"without a path, from the root.", gitops.InventoryLevels),
			},
			"owner":        only("Only assignments of owners of this name."),
			"host":         only("Only assignments on this host: a cluster type, or `clusters/<cluster>`."),
			"cluster":      only("Only assignments on this cluster, or on its cluster type, which is read from the records unless `cluster_type` is set."),
			"cluster_type": only("Only assignments on this cluster type and its clusters; with `cluster`, the type of that cluster."),
			"workload":     only("Only assignments of this workload."),
			"workspace": only("Only assignments of workloads of this workspace. Records of early versions of the provider lack it and are left out, " +
				"until the host is written again."),
			"limit": schema.Int64Attribute{
				Optional: true, MarkdownDescription: fmt.Sprintf("How many assignments are listed at most. Default %d.", defaultInventory),
			},
			"timeouts": timeouts.ReadAttribute(),
			"commit":   schemas.ComputedText("Id of the commit at which the branch was read; null where there is no such branch."),
			"complete": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether `assignments` is complete, or was cut at `limit`."},
			"owners": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "All owners that were found, by path and name, whatever the filters are.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"path": schemas.ComputedText("Path of the owner in the repository; null for the root."),
					"name": schemas.ComputedText("Name of the owner."),
				}},
			},
			"claims": schema.ListNestedAttribute{
				Computed: true,
				MarkdownDescription: "All claims (`flotilla_cluster_claim` resources, in whichever state) that were found, by path and name, " +
					"whatever the filters are. A cluster that two of them list at one path is reported in a warning.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"path":        schemas.ComputedText("Path of the claim in the repository; null for the root."),
					"name":        schemas.ComputedText("Name of the claim."),
					"environment": schemas.ComputedText("Name of the environment; null where the record does not say."),
					"clusters": schema.ListAttribute{
						Computed: true, ElementType: types.StringType, MarkdownDescription: "Names of its clusters, in the order in which they were taken.",
					},
				}},
			},
			"assignments": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Assignments, ordered by path, owner, host and deployment target.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"path":              schemas.ComputedText("Path of the owner in the repository; null for the root."),
					"owner":             schemas.ComputedText("Name of the owner."),
					"environment":       schemas.ComputedText("Name of the environment; null where the record does not say."),
					"host":              schemas.ComputedText("The host: a cluster type, or `clusters/<cluster>`."),
					"cluster_type":      schemas.ComputedText("Name of the cluster type; null where the host is a cluster whose type its record does not say."),
					"cluster":           schemas.ComputedText("Name of the cluster; null where the host is a cluster type."),
					"deployment_target": schemas.ComputedText("Full name of the deployment target."),
					"workload":          schemas.ComputedText("Name of the workload."),
					"workspace":         schemas.ComputedText("Name of the workspace; null where the record does not say."),
					"policies": schema.ListAttribute{
						Computed: true, ElementType: types.StringType, MarkdownDescription: "Names of the target policies that decided it.",
					},
					"config_version": schemas.ComputedText("Version of the configuration; null where the record does not say."),
					"tree":           schemas.ComputedText("Id of the tree that the folder has, as its owner wrote it."),
					"changed":        schemas.ComputedText("When the folder changed last, RFC 3339; null where the record does not say."),
					"commit": schemas.ComputedText("Id of the commit that changed it then; null where it is not among the newest commits of the branch, as after a " +
						"pull request that was squashed."),
					"objects": schema.ListNestedAttribute{
						Computed:            true,
						MarkdownDescription: "The objects that the agent reconciles it by.",
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"kind":      schemas.ComputedText("Kind of the object."),
							"namespace": schemas.ComputedText("Namespace of the object; null where it has none."),
							"name":      schemas.ComputedText("Name of the object."),
						}},
					},
				}},
			},
		},
	}
}

type inventoryModel struct {
	GitopsRepo  types.Dynamic         `tfsdk:"gitops_repo"`
	Owner       types.String          `tfsdk:"owner"`
	Host        types.String          `tfsdk:"host"`
	Cluster     types.String          `tfsdk:"cluster"`
	ClusterType types.String          `tfsdk:"cluster_type"`
	Workload    types.String          `tfsdk:"workload"`
	Workspace   types.String          `tfsdk:"workspace"`
	Limit       types.Int64           `tfsdk:"limit"`
	Timeouts    types.Dynamic         `tfsdk:"timeouts"`
	Commit      types.String          `tfsdk:"commit"`
	Complete    types.Bool            `tfsdk:"complete"`
	Owners      []inventoryOwnerModel `tfsdk:"owners"`
	Claims      []inventoryClaimModel `tfsdk:"claims"`
	Assignments types.List            `tfsdk:"assignments"`
}

type inventoryClaimModel struct {
	Path        *string  `tfsdk:"path"`
	Name        string   `tfsdk:"name"`
	Environment *string  `tfsdk:"environment"`
	Clusters    []string `tfsdk:"clusters"`
}

type inventoryOwnerModel struct {
	Path *string `tfsdk:"path"`
	Name string  `tfsdk:"name"`
}

type inventoryAssignmentModel struct {
	Path             *string                `tfsdk:"path"`
	Owner            string                 `tfsdk:"owner"`
	Environment      *string                `tfsdk:"environment"`
	Host             string                 `tfsdk:"host"`
	ClusterType      *string                `tfsdk:"cluster_type"`
	Cluster          *string                `tfsdk:"cluster"`
	DeploymentTarget string                 `tfsdk:"deployment_target"`
	Workload         string                 `tfsdk:"workload"`
	Workspace        *string                `tfsdk:"workspace"`
	Policies         []string               `tfsdk:"policies"`
	ConfigVersion    *string                `tfsdk:"config_version"`
	Tree             string                 `tfsdk:"tree"`
	Changed          *string                `tfsdk:"changed"`
	Commit           *string                `tfsdk:"commit"`
	Objects          []inventoryObjectModel `tfsdk:"objects"`
}

type inventoryObjectModel struct {
	Kind      string  `tfsdk:"kind"`
	Namespace *string `tfsdk:"namespace"`
	Name      string  `tfsdk:"name"`
}

var inventoryAssignmentType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"path": types.StringType, "owner": types.StringType, "environment": types.StringType, "host": types.StringType,
	"cluster_type": types.StringType, "cluster": types.StringType, "deployment_target": types.StringType, "workload": types.StringType,
	"workspace": types.StringType, "policies": types.ListType{ElemType: types.StringType}, "config_version": types.StringType,
	"tree": types.StringType, "changed": types.StringType, "commit": types.StringType,
	"objects": types.ListType{ElemType: types.ObjectType{AttrTypes: map[string]attr.Type{
		"kind": types.StringType, "namespace": types.StringType, "name": types.StringType,
	}}},
}}

// Read reads the records.
func (d *inventoryDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model inventoryModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	at, deadlines := model.decode(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	bounded, cancel := deadlines.During(ctx, timeouts.Read)
	defer cancel()
	found, err := d.Connection.Delivery.Inventory(bounded, at, gitops.InventoryFilter{
		Owner: model.Owner.ValueString(), Host: model.Host.ValueString(), Cluster: model.Cluster.ValueString(),
		ClusterType: model.ClusterType.ValueString(), Workload: model.Workload.ValueString(), Workspace: model.Workspace.ValueString(),
	})
	if err != nil {
		repository.AddError(bounded, &resp.Diagnostics, err, false)
		return
	}
	model.warn(found, &resp.Diagnostics)
	limit := defaultInventory
	if !model.Limit.IsNull() {
		limit = int(min(model.Limit.ValueInt64(), int64(len(found.Assignments)))) //nolint:gosec // a slice has so many
	}
	listed := found.Assignments[:min(limit, len(found.Assignments))]
	model.Commit, model.Complete = types.StringPointerValue(wording.OrNil(found.Commit)), types.BoolValue(len(listed) == len(found.Assignments))
	model.Owners = make([]inventoryOwnerModel, len(found.Owners))
	for i, owner := range found.Owners {
		model.Owners[i] = inventoryOwnerModel{Path: wording.OrNil(owner.Path), Name: owner.Name}
	}
	model.Claims = make([]inventoryClaimModel, len(found.Claims))
	for i, claim := range found.Claims {
		model.Claims[i] = inventoryClaimModel{
			Path: wording.OrNil(claim.Path), Name: claim.Name, Environment: wording.OrNil(claim.Environment), Clusters: claim.Names(),
		}
	}
	assignments := make([]inventoryAssignmentModel, len(listed))
	for i, assignment := range listed {
		assignments[i] = inventoryAssignment(assignment)
	}
	model.Assignments = types.ListNull(inventoryAssignmentType)
	if !largevalue.SetAside(ctx, "assignments", func(w *wire.Writer) { writeInventory(w, assignments) }) {
		list, problems := types.ListValueFrom(ctx, inventoryAssignmentType, assignments)
		resp.Diagnostics.Append(problems...)
		model.Assignments = list
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// decode reads the configuration, strictly.
func (m *inventoryModel) decode(diagnostics *diag.Diagnostics) (delivery.Location, timeouts.Timeouts) {
	at, _ := repository.DecodeLocation(m.GitopsRepo, diagnostics)
	tfvalue.CheckLimit(m.Limit, diagnostics)
	narrowing := m.narrowing()
	for _, name := range slices.Sorted(maps.Keys(narrowing)) {
		if value := narrowing[name]; !value.IsNull() && value.ValueString() == "" {
			diagnostics.AddAttributeError(path.Root(name), "Empty name", "Remove the attribute, or set it to null, for no filter.")
		}
	}
	if !m.Host.IsNull() && (!m.Cluster.IsNull() || !m.ClusterType.IsNull()) {
		diagnostics.AddAttributeError(path.Root("host"), "Host is given twice",
			"A host is a cluster type or a cluster: set either host, or cluster and cluster_type.")
	}
	return at, timeouts.DecodeRead(m.Timeouts, diagnostics)
}

func (m *inventoryModel) narrowing() map[string]types.String {
	return map[string]types.String{
		"owner": m.Owner, "host": m.Host, "cluster": m.Cluster, "cluster_type": m.ClusterType, "workload": m.Workload, "workspace": m.Workspace,
	}
}

// warn reports names that the inventory is narrowed to and that are in no record, since they may be misspelt; records
// that could not be read, or that no allowed key has signed; and clusters of two claims.
func (m *inventoryModel) warn(found gitops.Inventory, diagnostics *diag.Diagnostics) {
	if len(found.Unreadable) > 0 {
		diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Records cannot be read",
			fmt.Sprintf("The inventory lacks what these files record: %s. The next apply of their owners writes them again.",
				wording.List(found.Unreadable, fleetvalue.MaxDiagnostics)))
	}
	if len(found.Unsigned) > 0 {
		named := make([]string, len(found.Unsigned))
		for i, record := range found.Unsigned {
			named[i] = record.String()
		}
		diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Records are not signed by a known key",
			"What the inventory has from them can be of anybody who may push:\n"+wording.Lines(named, fleetvalue.MaxDiagnostics))
	}
	twice := gitops.TwiceIn(found.Claims)
	for _, cluster := range twice[:min(len(twice), fleetvalue.MaxDiagnostics)] {
		diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Cluster belongs to two claims", tfvalue.Sentence(cluster.String())+
			" Plans of these claims are refused until one of the records does not list it any more.")
	}
	var owners []string
	for _, owner := range found.Owners {
		owners = append(owners, owner.Name)
	}
	var clusters, clusterTypes []string
	for _, host := range found.Names.Hosts {
		if cluster, ok := strings.CutPrefix(host, "clusters/"); ok {
			clusters = append(clusters, cluster)
		} else {
			clusterTypes = append(clusterTypes, host)
		}
	}
	if !m.Cluster.IsNull() && found.TypeUnknown {
		name := m.Cluster.ValueString()
		if near := fleet.DidYouMean(name, clusters); near != "" && !slices.Contains(clusters, name) {
			diagnostics.AddAttributeWarning(path.Root("cluster"), "No record of this cluster", tfvalue.Sentence(fmt.Sprintf("no record is of a cluster %q%s", name, near)))
		} else {
			diagnostics.AddAttributeWarning(path.Root("cluster"), "Cluster type is not known", fmt.Sprintf(
				"No record names the type of cluster %q, so the inventory lacks what it gets by its type. Set cluster_type.", name))
		}
	}
	if len(found.Assignments) > 0 {
		return
	}
	for _, by := range []struct {
		attribute, kind string
		value           types.String
		names           []string
	}{
		{"owner", "owner", m.Owner, owners},
		{"host", "host", m.Host, found.Names.Hosts},
		{"cluster_type", "cluster type", m.ClusterType, clusterTypes},
		{"workload", "workload", m.Workload, found.Names.Workloads},
		{"workspace", "workspace", m.Workspace, found.Names.Workspaces},
	} {
		if name := by.value.ValueString(); name != "" && !slices.Contains(by.names, name) {
			diagnostics.AddAttributeWarning(path.Root(by.attribute), "No record of this "+by.kind,
				tfvalue.Sentence(fmt.Sprintf("no record that was read is of %s %q%s", by.kind, name, fleet.DidYouMean(name, by.names))))
		}
	}
}

func inventoryAssignment(of gitops.InventoryAssignment) inventoryAssignmentModel {
	assignment := inventoryAssignmentModel{
		Path: wording.OrNil(of.Owner.Path), Owner: of.Owner.Name, Environment: wording.OrNil(of.Owner.Environment), Host: of.Host, ClusterType: &of.Host,
		DeploymentTarget: of.DeploymentTarget, Workload: of.Workload, Workspace: wording.OrNil(of.Workspace), Policies: tfvalue.OrEmpty(of.Policies),
		ConfigVersion: wording.OrNil(of.ConfigVersion), Tree: of.Tree, Commit: wording.OrNil(of.Commit), Objects: make([]inventoryObjectModel, len(of.Objects)),
	}
	if cluster, ok := strings.CutPrefix(of.Host, "clusters/"); ok {
		assignment.Cluster, assignment.ClusterType = &cluster, wording.OrNil(of.ClusterType)
	}
	if !of.Changed.IsZero() {
		changed := of.Changed.UTC().Format(time.RFC3339)
		assignment.Changed = &changed
	}
	for i, object := range of.Objects {
		assignment.Objects[i] = inventoryObjectModel{Kind: object.Kind, Namespace: wording.OrNil(object.Namespace), Name: object.Name}
	}
	return assignment
}

// textField is an attribute that is a text, null where there is no value.
type textField struct {
	name  string
	value *string
}

func writeTexts(w *wire.Writer, fields ...textField) {
	for _, field := range fields {
		w.Text(field.name)
		if field.value == nil {
			w.Null()
			continue
		}
		w.Text(*field.value)
	}
}

// writeInventory writes what types.ListValueFrom makes.
func writeInventory(w *wire.Writer, assignments []inventoryAssignmentModel) {
	w.List(len(assignments))
	for i := range assignments {
		a := &assignments[i]
		w.Map(len(inventoryAssignmentType.AttrTypes))
		writeTexts(w,
			textField{"path", a.Path}, textField{"owner", &a.Owner}, textField{"environment", a.Environment}, textField{"host", &a.Host},
			textField{"cluster_type", a.ClusterType}, textField{"cluster", a.Cluster}, textField{"deployment_target", &a.DeploymentTarget},
			textField{"workload", &a.Workload}, textField{"workspace", a.Workspace}, textField{"config_version", a.ConfigVersion},
			textField{"tree", &a.Tree}, textField{"changed", a.Changed}, textField{"commit", a.Commit})
		w.Text("policies")
		w.List(len(a.Policies))
		for _, policy := range a.Policies {
			w.Text(policy)
		}
		w.Text("objects")
		w.List(len(a.Objects))
		for j := range a.Objects {
			object := &a.Objects[j]
			w.Map(3)
			writeTexts(w, textField{"kind", &object.Kind}, textField{"namespace", object.Namespace}, textField{"name", &object.Name})
		}
	}
}
