package rollout

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

const (
	maxStages = 100
	maxCount  = 1 << 20
)

const (
	halt     = "halt"
	rollBack = "roll_back"
	wait     = "wait"
	skip     = "skip"
)

// SettingsTable describes the attribute rollout.
var SettingsTable = &fleet.Table{
	Name: "rollout",
	Meaning: "The attribute `rollout` of `flotilla_assignment`: a change is written stage by stage, to each stage after the one " +
		"before has proven it. " +
		"`flotilla_rollout` has the same as attributes of its own.",
	Attributes: []fleet.Attribute{
		{
			Name: "stages", Type: fleet.ObjectsType, Required: true, Of: StageTable,
			Meaning: "The stages, in order, at most 100. Hosts that no stage selects are a last stage.",
		},
		{
			Name: "on_failure", Default: halt, Allowed: []string{halt, rollBack},
			Meaning: "The reaction to failed content: it halts, or its hosts return to the content before it.",
		},
		{
			Name: "failed_for", Type: fleet.DurationType,
			Meaning: "How long a cluster must have failed, by the times of the evidence. Unset: `5m` before a rollback, `0s` before a halt.",
		},
		{
			Name: "progress_deadline", Type: fleet.DurationType,
			Meaning: "How long a cluster may take to become ready. Content that is not ready by then has failed. Unset: any time.",
		},
		{Name: "unknown", Default: wait, Allowed: []string{wait, skip}, Meaning: "Whether clusters without a report are waited for."},
		windowsAttribute("When anything may be written. The windows of the rollout and those of the stage have to be open. Unset: at any time."),
		{
			Name: "approvals", Type: fleet.TextsType, EmptyElements: true,
			Meaning: "The approvals: `<deployment target>@<content>`, as `rolling_out` prints them.",
		},
		{
			Name: "expedite", Type: fleet.TextsType, EmptyElements: true,
			Meaning: "Deployment targets, or `<deployment target>@<content>`, that wait for no stage, soak time, approval or window.",
		},
	},
}

// StageTable describes a stage.
var StageTable = &fleet.Table{
	Name: "stage",
	Meaning: "Hosts that get a change together. A stage without selectors and `hosts` takes all hosts that no earlier stage " +
		"took. The `stages` of `flotilla_rollout` are the same, where each cluster is a host.",
	Attributes: []fleet.Attribute{
		{Name: "name", Required: true, Meaning: "Name of the stage, which plans print. Each stage has its own."},
		{
			Name: "cluster_type_selector", Type: fleet.ObjectType, Of: fleet.SelectorTable(),
			Meaning: "Hosts of cluster types with matching labels. With `cluster_selector`, both must match.",
		},
		{
			Name: "cluster_selector", Type: fleet.ObjectType, Of: fleet.SelectorTable(),
			Meaning: "Hosts that are clusters with matching labels. It matches no cluster type.",
		},
		{
			Name: "hosts", Type: fleet.TextsType, EmptyElements: true,
			Meaning: "Names of hosts, beside those that selectors match. `[]` selects none.",
		},
		{
			Name: "percent", Type: fleet.WholeType, Least: 1, Most: 100,
			Meaning: "The share of the hosts that the change reaches and that the stage selects, rounded up. Unset: all of them.",
		},
		{
			Name: "max_concurrent", Type: fleet.WholeType, Least: 1, Most: maxCount,
			Meaning: "How many hosts are under way at once. Unset: any number.",
		},
		{
			Name: "ready_percent", Type: fleet.WholeType, Default: 100, Least: 1, Most: 100,
			Meaning: "The share of clusters that has to be ready. Failures within `max_failed` do not count.",
		},
		{Name: "max_failed", Type: fleet.WholeType, Default: 0, Most: maxCount, Meaning: "How many clusters may fail before the change halts."},
		{Name: "soak", Type: fleet.DurationType, Meaning: "How long clusters must have been ready. Unset: no time."},
		{Name: "approval", Type: fleet.BoolType, Default: false, Meaning: "Whether each change needs one of `approvals` to enter the stage."},
		windowsAttribute("When the hosts of the stage may be written, besides the windows of the rollout. Unset: at any time."),
	},
}

// HoldTable describes a hold.
var HoldTable = &fleet.Table{
	Name:    "hold",
	Meaning: "One of `holds` of `flotilla_assignment` and `flotilla_rollout`: what stays as it is, until the hold is removed.",
	Attributes: []fleet.Attribute{
		{
			Name: "deployment_targets", Type: fleet.TextsType, EmptyElements: true,
			Meaning: "Full names of deployment targets. Unset: all. `[]` is none.",
		},
		{
			Name: "hosts", Type: fleet.TextsType, EmptyElements: true,
			Meaning: "Names of hosts, which are clusters for `flotilla_rollout`. Unset: all. `[]` is none.",
		},
		{Name: "reason", Meaning: "The reason, for people: plans print it."},
		{Name: "until", Type: fleet.TimeType, Meaning: "When the hold ends, compared with the time of the evidence. Unset: when it is removed."},
	},
}

func windowsAttribute(meaning string) fleet.Attribute {
	return fleet.Attribute{Name: "windows", Type: fleet.ObjectsType, Of: gate.WindowTable, Meaning: meaning}
}
