// Package scheduling implements flotilla_scheduling: the hosts of each deployment target, with the reasons.
package scheduling

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
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
	return frame.DataSource[schedulingModel]{
		Name: "scheduling", Read: read,
		Description: "The hosts of each deployment target with the reasons, and deployment targets without a host. Nothing is written or " +
			"asked of any server.",
		Attributes: fleetvalue.Narrowed(map[string]schema.Attribute{
			"fleet":    scheduledFleetAttribute(),
			"contents": contentsAttribute(),
			"constraints": results.MapAttribute("The results of the fleet's constraints, by name. `looked_at` is the sum of `passed`, `violated`, " +
				"`failed` and `pending`."),
			"assignments": assignments.MapAttribute("By key, `<host>/<deployment target>`, which is also the folder in the GitOps repository: " +
				"the assignments that `cluster_type`, `cluster` and `deployment_target` select, or all. Each is in the state, so select a part " +
				"of a large fleet. `deployment_targets` and `reconcilers` have the common attributes of all assignments of a deployment target " +
				"or a cluster type."),
			"deployment_targets": targets.MapAttribute("Deployment targets with a host, by full name."),
			"reconcilers": schemas.ComputedTextMap("For each cluster type with assignments, also to its clusters, the name of the " +
				"reconciler's template."),
			"unscheduled":            unscheduled.ListAttribute("Deployment targets of the environment that have no host."),
			"excluded":               excluded.ListAttribute("Assignments that policies of effect `exclude` took away."),
			"idle_hosts":             schemas.ComputedTexts("Hosts without assignments."),
			"idle_config_containers": schemas.ComputedTexts("Config containers that reach no assignment."),
			"idle_policies":          idlePolicies.ListAttribute("Target policies that assign nothing."),
		}),
	}.New()
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
	workloads, reconcilers := map[string]*fleet.Workload{}, map[string]string{}
	for _, assignment := range result.Assignments {
		workloads[assignment.Target.Name] = assignment.Target.Workload
		reconcilers[assignment.Host.ClusterType.Name] = assignment.Host.ClusterType.Reconciler
	}
	m.DeploymentTargets, m.Reconcilers = targets.MapOf(workloads), tfvalue.TextMap(reconcilers)
	m.Unscheduled, m.Excluded = unscheduled.List(result.Unscheduled), excluded.List(result.Excluded)
	m.IdlePolicies = idlePolicies.List(result.IdlePolicies)
	m.IdleHosts, m.IdleConfigContainers = tfvalue.Texts(result.IdleHosts), tfvalue.Texts(idle)
	selected := map[string]*schedule.Assignment{}
	for _, assignment := range result.Assignments {
		if m.Includes(assignment) {
			selected[assignment.Key()] = assignment
		}
	}
	m.Assignments = types.MapNull(assignments.Type())
	if !wire.SetAside(ctx, "assignments", func(w *wire.Writer) { assignments.WriteMap(w, selected) }) {
		m.Assignments = assignments.MapOf(selected)
	}
}

// maxListed bounds the violations of a rule in the state.
const maxListed = 100

func scheduledFleetAttribute() schema.SingleNestedAttribute {
	attribute := fleetvalue.ModelAttribute(" The state keeps its hash; the state of an assignment has the text.")
	attribute.Attributes["constraints"] = fleetvalue.EntriesAttribute(false, "The constraints. The state does without.")
	return attribute
}

// contentsAttribute has the input of rules about more than assignments, which need only the model: an unknown
// configuration value does not defer the data source without it.
func contentsAttribute() schema.SingleNestedAttribute {
	attribute := fleetvalue.RenderedAttribute()
	attribute.Required, attribute.Optional = false, true
	attribute.MarkdownDescription = "The fleet once more, for constraints over `config`, over `manifests` of a `target`, or over " +
		"`object`: without it, their subjects are pending. While a value in it is not known yet, the data source is read at apply. The " +
		"state does without. Documents are rendered as for a `flotilla_assignment` that has the name of the environment, and without the " +
		"location in the GitOps repository."
	return attribute
}

type rule = *constraint.RuleResult

var results = table.Definition[rule]{
	table.Text("mode", "`enforce` or `inform`.", func(r rule) string { return r.Mode }),
	table.Text("over",
		"The objects that the rule is evaluated over: `objects`, `assignments`, `hosts`, `deployment_targets`, `workspaces` or `fleet`.",
		func(r rule) string { return string(r.Over) }),
	table.Number("looked_at", "How many subjects the rule looks at.", func(r rule) int { return r.Looked }),
	table.Number("passed", "How many keep the rule.", func(r rule) int { return r.Passed }),
	table.Number("violated", "How many break the rule.", func(r rule) int { return r.Violated }),
	table.Number("failed", "For how many the rule could not be evaluated.", func(r rule) int { return r.Failed }),
	table.Number("pending", "For how many it cannot be decided yet.", func(r rule) int { return r.Undecided }),
	table.TextOrNull("error", "Why the rule as a whole could not be evaluated; null where it was.", func(r rule) string { return r.Error }),
	table.Objects("violations",
		"The first 100 subjects that break the rule, or whose evaluation failed. Attributes that do not apply are null.", violations,
		func(r rule) []constraint.RuleViolation { return r.Violations[:min(maxListed, len(r.Violations))] }),
}

var violations = table.Definition[constraint.RuleViolation]{
	table.TextOrNull("assignment", "Key of the assignment.", func(v constraint.RuleViolation) string { return v.Subject.Assignment }),
	table.TextOrNull("host", "The host, as in an assignment's key.", func(v constraint.RuleViolation) string { return v.Subject.Host }),
	table.TextOrNull("deployment_target", "Full name of the deployment target.",
		func(v constraint.RuleViolation) string { return v.Subject.DeploymentTarget }),
	table.TextOrNull("workspace", "Name of the workspace.", func(v constraint.RuleViolation) string { return v.Subject.Workspace }),
	table.TextOrNull("object", "Kind and name of the rendered document.", func(v constraint.RuleViolation) string { return v.Subject.Object }),
	table.TextOrNull("file", "File of the rendered document.", func(v constraint.RuleViolation) string { return v.Subject.File }),
	table.TextOrNull("made_by",
		"The maker of the object: `flotilla`, or of final objects, which are in no file, `chart`, `kustomization` or `manifest`.",
		func(v constraint.RuleViolation) string { return v.Subject.MadeBy }),
	table.Text("message", "The message of the rule.", func(v constraint.RuleViolation) string { return v.Message }),
}

func (m *schedulingModel) evaluate(
	ctx context.Context, c *connection.Connection, value fleet.Value, scheduled *schedule.Decisions, diagnostics *diag.Diagnostics,
) types.Map {
	none := results.MapOf(nil)
	if len(value.Constraints) == 0 {
		return none
	}
	program, found := pipeline.CompileConstraints(value.Constraints)
	if fleetvalue.AddErrors(diagnostics, found); program == nil {
		return none
	}
	var evaluated *constraint.Results
	if m.Contents.IsNull() || !program.NeedsContents() {
		evaluated, found = pipeline.ScheduledConstraints(ctx, value, scheduled)
	} else {
		contents := fleetvalue.DecodeObject(m.Contents, diagnostics)
		if contents.Model != value.Model {
			diagnostics.AddAttributeError(path.Root("contents"), "Another fleet", "This must be the same fleet as the attribute fleet has.")
			return none
		}
		result := c.Compute(contents, diagnostics)
		if result == nil {
			return none
		}
		evaluated, found = result.Constraints(ctx, value.Constraints, pipeline.Destination{Owner: value.Environment})
	}
	if fleetvalue.AddErrors(diagnostics, found); evaluated == nil {
		return none
	}
	rules := make(map[string]rule, len(evaluated.Rules))
	for i := range evaluated.Rules {
		rules[evaluated.Rules[i].Name] = &evaluated.Rules[i]
	}
	return results.MapOf(rules)
}
