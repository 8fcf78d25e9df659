// Package values implements flotilla_rollout, which moves values across the clusters of a fleet in stages.
package values

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
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
	MarkdownDescription: "Gives each cluster of a fleet the value that it shall have now: a Kubernetes version, a node image, a version " +
		"of a module, a firewall rule, or " +
		"anything else. A new value reaches one stage of clusters after the other, each when the one before has proven it, as a `rollout` " +
		"of `flotilla_assignment` does with " +
		"folders. `values` go to the resources that make and upgrade the clusters. It changes nothing but the state: values are in the " +
		"state and in plans as they are, so do " +
		"not roll out a secret; roll out the name of its version.",
	Attributes: map[string]schema.Attribute{
		"name": schemas.RequiredText(
			"Name of the rollout, a DNS label such as `kubernetes`. Approvals begin with it, and `holds` and `expedite` name it as a " +
				"deployment target. A " +
				"new name changes no value.",
		),
		"fleet": schemas.RequiredWriteOnly(
			"The fleet that `provider::flotilla::fleet` or `control_plane` returned, through a `local`: its clusters get the values. It is " +
				"write-only: in no state, and one " +
				"line in a plan. A cluster that joins the fleet gets what is released: what all stages have proven last. One that leaves is in " +
				"`values` no more.",
		),
		"wanted": schemas.RequiredDynamic(
			"The value that all clusters shall have in the end, of any type; or `{ by_cluster = { <cluster> = <value> } }`, with a value for " +
				"each cluster of the " +
				"fleet. While it is not known yet, clusters that are held keep their values, and no other value is known.",
		),
		"released": schemas.OptionalDynamic(
			"The values of clusters that this resource gave no value yet, in the form of `wanted`, where `by_cluster` needs not have all " +
				"clusters. It is used by the first " +
				"apply, after a lost state, and with `-replace`; later only for new clusters that `by_cluster` names. Then a cluster that has the " +
				"wanted value, by `proof`, keeps that. Any " +
				"other is given what is released, and the wanted value comes to it stage by stage. A cluster whose facts prove neither is an " +
				"error, unless `by_cluster` names it; without `proof` " +
				"what is released is believed. Without `released`, a cluster that is known to be there and does not prove the wanted value is an " +
				"error; those that nothing is known of are given " +
				"the wanted value at once, and a warning lists them. A `-replace` that would begin with other values than were given is an error.",
		),
		"stages": schemas.RequiredDynamic(
			schemas.Setting(
				"The stages, in order, as those of the `rollout` of `flotilla_assignment`, where hosts are clusters. Clusters that no stage "+
					"selects are a last stage.",
				fleet.ObjectsType,
				rollout.StageTable,
			),
		),
		"proof": schemas.OptionalText(
			"Whether a cluster has a value, in CEL over `value` and `facts`, such as `facts.kubernetes_version.startsWith(value)`. The facts " +
				"are those of " +
				"`flotilla_cluster_facts` in `evidence`. A cluster of which it is not true has another value, and is waited for. Where it cannot " +
				"be evaluated, it is waited for, too, and the plan says " +
				"why. Without it, a cluster has what it was given since then.",
		),
		"evidence": schemas.RequiredWriteOnly(
			"The evidence of the clusters: `evidence` of `flotilla_cluster_facts`, `flotilla_measurements` or `flotilla_compliance`, or a list " +
				"of them. All that speak of a " +
				"cluster have to call it ready; it has failed where any says so. It is write-only: in no state, and no difference in a plan. The " +
				"time of the oldest is the time of the rollout. " +
				"Where none of them knows any cluster, only time counts. Measurements have to be of clusters or of the fleet: a rollout of values " +
				"knows no hosts and no assignments.",
		),
		"on_failure": schemas.OptionalText(
			"The fate of a value that has failed: `halt` (default) keeps all values as they are; `roll_back` gives clusters that have it what " +
				"they had before.",
		),
		"failed_for": schemas.OptionalText(
			"How long a cluster must have failed, a duration. Default: `5m` with `roll_back`, and `0s` before a halt.",
		),
		"progress_deadline": schemas.OptionalText(
			"How long a cluster may take to have the value and be ready, a duration. A value that is not ready by then has failed. Default: " +
				"any time.",
		),
		"unknown": schemas.OptionalText("Whether clusters of which nothing is known are waited for: `wait` (default) or `skip`."),
		"windows": schemas.OptionalDynamic(
			schemas.Setting(
				"When values may change. An apply after they have closed fails, and gives nothing. A new cluster gets what is released at any time.",
				fleet.ObjectsType,
				gate.WindowTable,
			),
		),
		"approvals": schemas.OptionalDynamic("The approvals, as `<name>@<content>`, which `rolling_out` prints."),
		"expedite":  schemas.OptionalDynamic("The name, or `<name>@<content>`, of what waits for no stage, soak time, approval or window."),
		"holds": schemas.OptionalDynamic(
			schemas.Setting("Clusters that keep the values that they have.", fleet.ObjectsType, rollout.HoldTable),
		),
		"values": schemas.ComputedDynamic(
			"By cluster, the value that it shall have now: a map, or an object where the values have different types. It goes to the resources " +
				"that make " +
				"the clusters, as in `for_each`.",
		),
		"changes": schemas.ComputedTexts(
			"The changes of the plan, for people, such as `edge-1: 1.30 -> 1.31`, and what waits for what. In the state it is what the last " +
				"apply changed; the next plan " +
				"begins without it.",
		),
		"rolling_out": schema.ObjectAttribute{
			Computed: true, AttributeTypes: repository.Summary.Type().AttrTypes,
			MarkdownDescription: "A summary, while a value is under way; otherwise null:" + repository.Summary.Meanings(),
		},
		"rolled_out": schemas.ComputedBool("Whether all clusters have the wanted value, and have proven it."),
		"proven": schemas.ComputedDynamic(
			"The last `wanted` that was rolled out: all clusters have proven it. Null before. It is the `candidate` of a `flotilla_promotion`.",
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

// validate checks the configuration on its own.
func validate(_ context.Context, m *rolloutModel, diagnostics *diag.Diagnostics) {
	m.decode(diagnostics)
}

// plan decides on every plan, because the evidence may have changed.
func plan(ctx context.Context, c *frame.Call[rolloutModel]) {
	o := operationOf(ctx, c)
	if o.decide() {
		o.warn()
	}
	if c.Diagnostics.HasError() {
		return
	}
	o.set(ctx)
	if o.outcome == nil {
		return
	}
	failed, others := o.outcome.Split()
	if len(failed.Progress) > 0 {
		c.Diagnostics.AddAttributeWarning(path.Root("stages"), "Rollout has failed", strings.Join(failed.Lines(), "\n"))
	}
	if c.Prior != nil && c.Model.Changes.Equal(c.Prior.Changes) && others.HasMore() { // no state has it
		c.Diagnostics.AddAttributeWarning(path.Root("stages"), "Rollout waits", strings.Join(others.Lines(), "\n"))
	}
}

// apply decides again once everything is known, and saves the input of the next step.
func apply(ctx context.Context, c *frame.Call[rolloutModel]) {
	o := operationOf(ctx, c)
	o.at = c.Connection.Now()
	if !o.decide() || !o.checkWindows() {
		return
	}
	o.set(ctx)
	o.save(ctx)
}
