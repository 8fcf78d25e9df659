// Package scheduling is flotilla_scheduling: which deployment target goes to which host, and why.
package scheduling

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/largevalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/wire"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

var (
	_ datasource.DataSource              = &schedulingDataSource{}
	_ datasource.DataSourceWithConfigure = &schedulingDataSource{}
)

type schedulingDataSource struct{ connection.DataSource }

func New() datasource.DataSource { return &schedulingDataSource{} }

// Metadata names the data source.
func (*schedulingDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_scheduling"
}

// Schema is the fleet, and its assignments.
func (*schedulingDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	policies := schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Names of the target policies that decided it."}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Which deployment target goes to which host, and why; which have no host, and why not. Nothing is written or " +
			"asked of any server.",
		Attributes: map[string]schema.Attribute{
			"fleet":       scheduledFleetAttribute(),
			"contents":    contentsAttribute(),
			"constraints": constraintResultsAttribute(),
			"assignments": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "By key, `<host>/<deployment target>`, which is also the folder in the GitOps repository. What all " +
					"assignments of a deployment target or on a cluster type have in common is in `deployment_targets` and `reconcilers`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"cluster_type":      schemas.ComputedText("Name of the cluster type."),
					"cluster":           schemas.ComputedText("Name of the cluster; null where the host is a cluster type."),
					"deployment_target": schemas.ComputedText("Full name of the deployment target."),
					"namespace":         schemas.ComputedText("Namespace on the clusters."),
					"policies":          policies,
				}},
			},
			"deployment_targets": schema.MapNestedAttribute{
				Computed:            true,
				MarkdownDescription: "By full name, those that are assigned to any host.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"workload":  schemas.ComputedText("Name of the workload."),
					"workspace": schemas.ComputedText("Name of the workspace that owns it."),
				}},
			},
			"reconcilers": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "By cluster type to which, or to a cluster of which, anything is assigned, the name of the " +
					"reconciler's template.",
			},
			"unscheduled": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Deployment targets of the environment that have no host.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"deployment_target":  schemas.ComputedText("Full name of the deployment target."),
					"reason":             schemas.ComputedText("Why it has no host."),
					"nearest_host":       schemas.ComputedText("The host that came nearest; null where no policy selects the deployment target."),
					"failed_requirement": schemas.ComputedText("The first requirement that failed; null where there is none."),
				}},
			},
			"excluded": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "What policies of effect `exclude` took away.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"host":              schemas.ComputedText("The host, as in an assignment's key."),
					"deployment_target": schemas.ComputedText("Full name of the deployment target."),
					"policies":          policies,
				}},
			},
			"idle_hosts": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Hosts to which nothing is assigned.",
			},
			"idle_config_containers": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Config containers that reach no assignment.",
			},
			"idle_policies": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "Target policies that assign nothing.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":   schemas.ComputedText("Name of the policy."),
					"reason": schemas.ComputedText("What it lacks."),
				}},
			},
		},
	}
}

type schedulingModel struct {
	Fleet                scheduledFleetModel    `tfsdk:"fleet"`
	Contents             types.Object           `tfsdk:"contents"`
	Constraints          types.Map              `tfsdk:"constraints"`
	Assignments          types.Map              `tfsdk:"assignments"`
	DeploymentTargets    map[string]targetModel `tfsdk:"deployment_targets"`
	Reconcilers          map[string]string      `tfsdk:"reconcilers"`
	Unscheduled          []unscheduledModel     `tfsdk:"unscheduled"`
	Excluded             []excludedModel        `tfsdk:"excluded"`
	IdlePolicies         []idlePolicyModel      `tfsdk:"idle_policies"`
	IdleHosts            []string               `tfsdk:"idle_hosts"`
	IdleConfigContainers []string               `tfsdk:"idle_config_containers"`
}

type scheduledFleetModel struct {
	Format      types.String        `tfsdk:"format"`
	Environment types.String        `tfsdk:"environment"`
	Model       types.String        `tfsdk:"model"`
	Constraints *fleetvalue.Entries `tfsdk:"constraints"`
}

func (m scheduledFleetModel) value(diagnostics *diag.Diagnostics) fleet.Value {
	return fleet.Value{
		Format: m.Format.ValueString(), Environment: m.Environment.ValueString(), Model: m.Model.ValueString(),
		Constraints: m.Constraints.Read(diagnostics),
	}
}

// assignedTypes are the attributes of each assignment. Terraform prints each of them on its own line, so values that
// many assignments share are not among them.
var assignedTypes = map[string]attr.Type{
	"cluster_type": types.StringType, "cluster": types.StringType, "deployment_target": types.StringType,
	"namespace": types.StringType, "policies": types.ListType{ElemType: types.StringType},
}

// assignedValue is the attribute assignments.
func assignedValue(assignments []*schedule.Assignment) types.Map {
	values := make(map[string]attr.Value, len(assignments))
	for _, assignment := range assignments {
		cluster := types.StringNull()
		if assignment.Host.Cluster != nil {
			cluster = types.StringValue(assignment.Host.Cluster.Name)
		}
		policies := make([]attr.Value, len(assignment.Policies))
		for i, policy := range assignment.Policies {
			policies[i] = types.StringValue(policy)
		}
		values[assignment.Key()] = types.ObjectValueMust(assignedTypes, map[string]attr.Value{
			"cluster_type": types.StringValue(assignment.Host.ClusterType.Name), "cluster": cluster,
			"deployment_target": types.StringValue(assignment.Target.Name), "namespace": types.StringValue(assignment.Namespace),
			"policies": types.ListValueMust(types.StringType, policies),
		})
	}
	return types.MapValueMust(types.ObjectType{AttrTypes: assignedTypes}, values)
}

// writeAssigned writes the value of assignedValue in the form of package wire.
func writeAssigned(w *wire.Writer, assignments []*schedule.Assignment) {
	w.Map(len(assignments))
	for _, assignment := range assignments {
		w.Text(assignment.Key())
		w.Map(len(assignedTypes))
		w.Text("cluster")
		if assignment.Host.Cluster != nil {
			w.Text(assignment.Host.Cluster.Name)
		} else {
			w.Null()
		}
		w.Text("cluster_type")
		w.Text(assignment.Host.ClusterType.Name)
		w.Text("deployment_target")
		w.Text(assignment.Target.Name)
		w.Text("namespace")
		w.Text(assignment.Namespace)
		w.Text("policies")
		w.List(len(assignment.Policies))
		for _, policy := range assignment.Policies {
			w.Text(policy)
		}
	}
}

type targetModel struct {
	Workload  string `tfsdk:"workload"`
	Workspace string `tfsdk:"workspace"`
}

type unscheduledModel struct {
	DeploymentTarget  string  `tfsdk:"deployment_target"`
	Reason            string  `tfsdk:"reason"`
	NearestHost       *string `tfsdk:"nearest_host"`
	FailedRequirement *string `tfsdk:"failed_requirement"`
}

type excludedModel struct {
	Host             string   `tfsdk:"host"`
	DeploymentTarget string   `tfsdk:"deployment_target"`
	Policies         []string `tfsdk:"policies"`
}

type idlePolicyModel struct {
	Name   string `tfsdk:"name"`
	Reason string `tfsdk:"reason"`
}

// Read schedules the fleet.
func (d *schedulingDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model schedulingModel
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, fleetvalue.Path, &model.Fleet)...)
	if resp.Diagnostics.HasError() {
		return
	}
	value := model.Fleet.value(&resp.Diagnostics)
	result, idle, found := pipeline.Schedule(value)
	if fleetvalue.AddErrors(&resp.Diagnostics, found); resp.Diagnostics.HasError() {
		return
	}
	model.Constraints = d.constraints(ctx, req, value, result, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	model.Fleet.Model = types.StringValue(tfvalue.Hash(model.Fleet.Model.ValueString()))
	model.Fleet.Constraints = nil
	model.Contents = types.ObjectNull(contentsTypes)
	model.DeploymentTargets, model.Reconcilers = map[string]targetModel{}, map[string]string{}
	for _, assignment := range result.Assignments {
		workload := assignment.Target.Workload
		model.DeploymentTargets[assignment.Target.Name] = targetModel{Workload: workload.Name, Workspace: workload.Workspace}
		model.Reconcilers[assignment.Host.ClusterType.Name] = assignment.Host.ClusterType.Reconciler
	}
	model.Unscheduled = make([]unscheduledModel, len(result.Unscheduled))
	for i, unscheduled := range result.Unscheduled {
		model.Unscheduled[i] = unscheduledModel{
			DeploymentTarget: unscheduled.DeploymentTarget, Reason: unscheduled.Reason,
			NearestHost: wording.OrNil(unscheduled.NearestHost), FailedRequirement: wording.OrNil(unscheduled.FailedRequirement),
		}
	}
	model.Excluded = make([]excludedModel, len(result.Excluded))
	for i, excluded := range result.Excluded {
		model.Excluded[i] = excludedModel(excluded)
	}
	model.IdleHosts = tfvalue.OrEmpty(result.IdleHosts)
	model.IdleConfigContainers = tfvalue.OrEmpty(idle)
	model.IdlePolicies = make([]idlePolicyModel, len(result.IdlePolicies))
	for i, policy := range result.IdlePolicies {
		model.IdlePolicies[i] = idlePolicyModel(policy)
	}
	model.Assignments = types.MapNull(types.ObjectType{AttrTypes: assignedTypes})
	if !largevalue.SetAside(ctx, "assignments", func(w *wire.Writer) { writeAssigned(w, result.Assignments) }) {
		model.Assignments = assignedValue(result.Assignments)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
