// Package values implements flotilla_rollout, which moves values across the clusters of a fleet in stages.
package values

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

// New returns the resource, which exists only in the state.
func New() resource.Resource {
	return frame.Resource[rolloutModel]{
		Name: "rollout", Schema: definition, Validate: validate, Plan: plan, Create: apply, Update: apply, Import: importState,
		WriteOnly: func(m *rolloutModel) map[string]any {
			return map[string]any{"fleet": &m.Fleet, "evidence": &m.Evidence}
		},
	}.New()
}

var definition = schema.Schema{
	MarkdownDescription: "Moves a value across the clusters of a fleet in stages: a Kubernetes version, a node image, a version of a " +
		"module, a firewall rule, or anything else. Each stage of clusters gets a new value after the stage before has proven it, as a " +
		"`rollout` of `flotilla_assignment` does with folders. `values` go to the resources that create and upgrade the clusters. It " +
		"changes only the state. State and plans have the values in plain text: roll out the name of a secret's version, never the " +
		"secret.",
	Attributes: map[string]schema.Attribute{
		"name": schemas.RequiredText("Name of the rollout, a DNS label such as `kubernetes`. Approvals begin with it, and `holds` and " +
			"`expedite` use it as the name of a deployment target. A new name changes no value."),
		"fleet": schemas.RequiredWriteOnly("The fleet from `provider::flotilla::fleet` or `control_plane`, through a `local`: its clusters " +
			"get the values. It is write-only: it is in no state, and takes one line in a plan. A new cluster gets the released value, the " +
			"last one that all stages have proven. A cluster that leaves the fleet leaves `values`."),
		"wanted": schemas.RequiredDynamic("The final value of all clusters, of any type; or `{ by_cluster = { <cluster> = <value> } }`, " +
			"with a value for each cluster of the fleet. While it is unknown, held clusters keep their values, and all other values are " +
			"unknown."),
		"released": schemas.OptionalDynamic("The present values of clusters without a value from this resource, in the form of `wanted`; " +
			"`by_cluster` need not have all clusters. The first apply uses it, also after a lost state and with `-replace`; later applies use " +
			"it only for new clusters in `by_cluster`. A cluster that has the wanted value, by `proof`, keeps it. Every other cluster starts " +
			"with the released value, and gets the wanted one stage by stage. A cluster whose facts prove neither value is an error unless " +
			"`by_cluster` names it; without `proof`, the released value is trusted. Without `released`, an existing cluster that does not " +
			"prove the wanted value is an error; a cluster without any facts gets the wanted value at once, and a warning lists it. A " +
			"`-replace` that would start with other values than the present ones is an error."),
		"stages": schemas.RequiredDynamic(schemas.Setting("The stages in order, like the stages of `rollout` of `flotilla_assignment`; "+
			"hosts are clusters. Clusters that no stage selects form a last stage.", fleet.ObjectsType, rollout.StageTable)),
		"proof": schemas.OptionalText("Whether a cluster has a value, in CEL over `value` and `facts`, such as " +
			"`facts.kubernetes_version.startsWith(value)`. The facts are from the `flotilla_cluster_facts` in `evidence`. The rollout waits " +
			"for a cluster without proof, and for one whose proof cannot be evaluated; the plan gives the reason. Without `proof`, a cluster " +
			"counts as having the value since it was given."),
		"evidence": schemas.RequiredWriteOnly("The evidence about the clusters: `evidence` of `flotilla_cluster_facts`, " +
			"`flotilla_measurements` or `flotilla_compliance`, or a list of these. A cluster is ready if all documents that mention it call " +
			"it ready, and failed if any calls it failed. `evidence` is write-only: it is in no state, and makes no difference in a plan. The " +
			"rollout takes place at the time of the oldest document. If no document has a cluster, only time counts. Measurements must be of " +
			"clusters or of the fleet, because a rollout of values has no hosts and no assignments."),
		"on_failure": schemas.OptionalText(
			"The effect of a failed value: `halt` (default) keeps all values; `roll_back` gives its clusters their former values.",
		),
		"failed_for": schemas.OptionalText(
			"How long a cluster must have failed, a duration. Default: `5m` with `roll_back`, and `0s` before a halt.",
		),
		"progress_deadline": schemas.OptionalText(
			"How long a cluster may take to have the value and be ready, a duration. After that, the value has failed. Default: no limit.",
		),
		"unknown": schemas.OptionalText("Whether the rollout waits for clusters without evidence: `wait` (default) or `skip`."),
		"windows": schemas.OptionalDynamic(schemas.Setting("When values may change. An apply after the windows have closed fails, and "+
			"changes no value. A new cluster gets the released value at any time.", fleet.ObjectsType, gate.WindowTable)),
		"approvals": schemas.OptionalDynamic("The approvals, as `<name>@<content>`, which `rolling_out` shows."),
		"expedite":  schemas.OptionalDynamic("The name, or `<name>@<content>`, that skips stages, soak times, approvals and windows."),
		"holds":     schemas.OptionalDynamic(schemas.Setting("Clusters that keep their values.", fleet.ObjectsType, rollout.HoldTable)),
		"values": schemas.ComputedDynamic("The present value of each cluster: a map, or an object if the values have different types. Use " +
			"it in the resources that create the clusters, as in `for_each`."),
		"changes": schemas.ComputedTexts("The changes of the plan for people, such as `edge-1: 1.30 -> 1.31`, and the conditions that " +
			"changes wait for. The state has the changes of the last apply, until the next plan."),
		"rolling_out": schema.ObjectAttribute{
			Computed: true, AttributeTypes: repository.Summary.Type().AttrTypes,
			MarkdownDescription: "A summary, while a value is under way; otherwise null:" + repository.Summary.Meanings(),
		},
		"rolled_out": schemas.ComputedBool("Whether all clusters have proven the wanted value."),
		"proven": schemas.ComputedDynamic(
			"The last `wanted` that all clusters have proven; null before the first. Use it as the `candidate` of a `flotilla_promotion`.",
		),
	},
}

type rolloutModel struct {
	Name             types.String  `tfsdk:"name"`
	Fleet            types.Dynamic `tfsdk:"fleet"`
	Wanted           types.Dynamic `tfsdk:"wanted"`
	Released         types.Dynamic `tfsdk:"released"`
	Stages           types.Dynamic `tfsdk:"stages"`
	Proof            types.String  `tfsdk:"proof"`
	Evidence         types.Dynamic `tfsdk:"evidence"`
	OnFailure        types.String  `tfsdk:"on_failure"`
	FailedFor        types.String  `tfsdk:"failed_for"`
	ProgressDeadline types.String  `tfsdk:"progress_deadline"`
	Unknown          types.String  `tfsdk:"unknown"`
	Windows          types.Dynamic `tfsdk:"windows"`
	Approvals        types.Dynamic `tfsdk:"approvals"`
	Expedite         types.Dynamic `tfsdk:"expedite"`
	Holds            types.Dynamic `tfsdk:"holds"`
	Values           types.Dynamic `tfsdk:"values"`
	Changes          types.List    `tfsdk:"changes"`
	RollingOut       types.Object  `tfsdk:"rolling_out"`
	RolledOut        types.Bool    `tfsdk:"rolled_out"`
	Proven           types.Dynamic `tfsdk:"proven"`
}

func validate(_ context.Context, m *rolloutModel, diagnostics *diag.Diagnostics) {
	m.decode(diagnostics)
}

// plan decides each time, because the evidence may have changed.
func plan(ctx context.Context, c *frame.Call[rolloutModel]) {
	d := decide(c.Model, readPast(ctx, c), time.Time{}, c.Diagnostics)
	if d == nil {
		c.Model.setUnknown()
		return
	}
	d.warn(c.Diagnostics)
	d.set(ctx, c.Model)
	failed, others := d.Split()
	if len(failed.Progress) > 0 {
		c.Diagnostics.AddAttributeWarning(path.Root("stages"), "Rollout has failed", strings.Join(failed.Lines(), "\n"))
	}
	if c.Prior != nil && c.Model.Changes.Equal(c.Prior.Changes) && len(others.Progress) > 0 {
		c.Diagnostics.AddAttributeWarning(path.Root("stages"), "Rollout waits", strings.Join(others.Lines(), "\n"))
	}
}

// apply decides again once everything is known.
func apply(ctx context.Context, c *frame.Call[rolloutModel]) {
	now := c.Connection.Now()
	d := decide(c.Model, readPast(ctx, c), now, c.Diagnostics)
	if d == nil || !d.checkWindows(now, c.Diagnostics) {
		return
	}
	d.set(ctx, c.Model)
	privatestate.SaveSealed(ctx, memoryEntry, d.Memory, c.Private, c.Diagnostics)
}

const memoryEntry = "rollout"

// load returns nil if there is no private state, or none that can be read: then the state has the values of clusters.
func load(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *rollout.Memory {
	return privatestate.LoadSealed[rollout.Memory](ctx, memoryEntry, "the assigned values are read from the attribute values instead",
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
