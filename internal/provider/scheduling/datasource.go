// Package scheduling implements flotilla_scheduling: the hosts of each deployment target, with the reasons.
package scheduling

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[schedulingModel]{Name: "scheduling", Schema: definition(), Read: read}.New()
}

func definition() schema.Schema {
	attributes := fleetvalue.NarrowingAttributes()
	maps.Copy(attributes, map[string]schema.Attribute{
		"fleet":       scheduledFleetAttribute(),
		"contents":    contentsAttribute(),
		"constraints": constraintResultsAttribute(),
		"assignments": assignments.MapAttribute(
			"By key, `<host>/<deployment target>`, which is also the folder in the GitOps repository: the assignments that `cluster_type`, " +
				"`cluster` and " +
				"`deployment_target` select, or all. Each is in the state, so select a part of a large fleet. " +
				"`deployment_targets` and `reconcilers` have the common attributes of all assignments of a deployment target or a cluster type.",
		),
		"deployment_targets": targets.MapAttribute("Deployment targets with a host, by full name."),
		"reconcilers": schemas.ComputedTextMap("For each cluster type with assignments, also to its clusters, the name of the " +
			"reconciler's template."),
		"unscheduled":            unscheduled.ListAttribute("Deployment targets of the environment that have no host."),
		"excluded":               excluded.ListAttribute("Assignments that policies of effect `exclude` took away."),
		"idle_hosts":             schemas.ComputedTexts("Hosts without assignments."),
		"idle_config_containers": schemas.ComputedTexts("Config containers that reach no assignment."),
		"idle_policies":          idlePolicies.ListAttribute("Target policies that assign nothing."),
	})
	return schema.Schema{
		MarkdownDescription: "The hosts of each deployment target with the reasons, and deployment targets without a host. Nothing is " +
			"written or " +
			"asked of any server.",
		Attributes: attributes,
	}
}

type schedulingModel struct {
	fleetvalue.Narrowing
	Fleet                types.Object `tfsdk:"fleet"`
	Contents             types.Object `tfsdk:"contents"`
	Constraints          types.Map    `tfsdk:"constraints"`
	Assignments          types.Map    `tfsdk:"assignments"`
	DeploymentTargets    types.Map    `tfsdk:"deployment_targets"`
	Reconcilers          types.Map    `tfsdk:"reconcilers"`
	Unscheduled          types.List   `tfsdk:"unscheduled"`
	Excluded             types.List   `tfsdk:"excluded"`
	IdlePolicies         types.List   `tfsdk:"idle_policies"`
	IdleHosts            types.List   `tfsdk:"idle_hosts"`
	IdleConfigContainers types.List   `tfsdk:"idle_config_containers"`
}

// assignments lack shared values, because Terraform prints each attribute on a line of its own.
var assignments = table.Definition[*schedule.Assignment]{
	table.Text("cluster_type", "Name of the cluster type.", func(a *schedule.Assignment) string { return a.Host.ClusterType.Name }),
	table.TextOrNull("cluster", "Name of the cluster; null where the host is a cluster type.", func(a *schedule.Assignment) string {
		if a.Host.Cluster == nil {
			return ""
		}
		return a.Host.Cluster.Name
	}),
	table.Text("deployment_target", "Full name of the deployment target.", func(a *schedule.Assignment) string { return a.Target.Name }),
	table.Text("namespace", "Namespace on the clusters.", func(a *schedule.Assignment) string { return a.Namespace }),
	table.Texts("policies", deciding, func(a *schedule.Assignment) []string { return a.Policies }),
}

const deciding = "Names of the target policies that decided it."

var targets = table.Definition[*fleet.Workload]{
	table.Text("workload", "Name of the workload.", func(w *fleet.Workload) string { return w.Name }),
	table.Text("workspace", "Name of the workspace that owns it.", func(w *fleet.Workload) string { return w.Workspace }),
}

var unscheduled = table.Definition[schedule.Unscheduled]{
	table.Text("deployment_target", "Full name of the deployment target.", func(u schedule.Unscheduled) string { return u.DeploymentTarget }),
	table.Text("reason", "Why it has no host.", func(u schedule.Unscheduled) string { return u.Reason }),
	table.TextOrNull("nearest_host", "The host that came nearest; null where no policy selects the deployment target.",
		func(u schedule.Unscheduled) string { return u.NearestHost }),
	table.TextOrNull("failed_requirement", "The first requirement that failed; null where there is none.",
		func(u schedule.Unscheduled) string { return u.FailedRequirement }),
}

var excluded = table.Definition[schedule.Excluded]{
	table.Text("host", "The host, as in an assignment's key.", func(e schedule.Excluded) string { return e.Host }),
	table.Text("deployment_target", "Full name of the deployment target.", func(e schedule.Excluded) string { return e.DeploymentTarget }),
	table.Texts("policies", deciding, func(e schedule.Excluded) []string { return e.Policies }),
}

var idlePolicies = table.Definition[schedule.IdlePolicy]{
	table.Text("name", "Name of the policy.", func(p schedule.IdlePolicy) string { return p.Name }),
	table.Text("reason", "The reason why it assigns nothing.", func(p schedule.IdlePolicy) string { return p.Reason }),
}

func read(ctx context.Context, c *connection.Connection, m *schedulingModel, diagnostics *diag.Diagnostics) {
	value := fleetvalue.DecodeObject(m.Fleet, diagnostics)
	result, idle, found := pipeline.Schedule(value)
	if fleetvalue.AddErrors(diagnostics, found); diagnostics.HasError() {
		return
	}
	if m.Check(result, diagnostics); diagnostics.HasError() {
		return
	}
	if m.Constraints = m.evaluate(ctx, c, value, result, diagnostics); diagnostics.HasError() {
		return
	}
	m.Fleet, m.Contents = fleetvalue.Hashed(m.Fleet), types.ObjectNull(m.Contents.AttributeTypes(ctx))
	workloads, reconcilers := map[string]*fleet.Workload{}, map[string]attr.Value{}
	for _, assignment := range result.Assignments {
		workloads[assignment.Target.Name] = assignment.Target.Workload
		reconcilers[assignment.Host.ClusterType.Name] = types.StringValue(assignment.Host.ClusterType.Reconciler)
	}
	m.DeploymentTargets, m.Reconcilers = targets.MapOf(workloads), types.MapValueMust(types.StringType, reconcilers)
	m.Unscheduled, m.Excluded = unscheduled.List(result.Unscheduled), excluded.List(result.Excluded)
	m.IdlePolicies = idlePolicies.List(result.IdlePolicies)
	m.IdleHosts, m.IdleConfigContainers = tfvalue.Texts(result.IdleHosts), tfvalue.Texts(idle)
	selected := map[string]*schedule.Assignment{}
	for _, assignment := range result.Assignments {
		if m.Includes(assignment) {
			selected[assignment.Key()] = assignment
		}
	}
	m.Assignments = wire.SetAside(ctx, "assignments", assignments.MapOf(selected), types.MapNull(assignments.Type()))
}

// Rules about assignments need only the model. The input of other rules is in an attribute of its own, so that an
// unknown configuration value does not defer the data source.
