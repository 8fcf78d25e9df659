package rollout

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Settings describes how a change goes through the hosts.
type Settings struct {
	Stages   []Stage
	RollBack bool
	// ProgressDeadline limits the time until a cluster is ready; 0: no limit.
	ProgressDeadline time.Duration
	// FailedFor is the minimum duration of a failure, by the times of the evidence.
	FailedFor   time.Duration
	SkipUnknown bool
	Windows     gate.Windows
	Approvals   gate.Approvals
	// Expedite lists deployment targets, or their content, that wait for nothing.
	Expedite []string
}

// Stage is a set of hosts that receive a change together. Its JSON is part of the mark: omit new fields at their default, or a
// new version restarts all rollouts.
type Stage struct {
	Name                string          `json:"name"`
	ClusterTypeSelector *fleet.Selector `json:"cluster_type_selector,omitzero"` // nil: none
	ClusterSelector     *fleet.Selector `json:"cluster_selector,omitzero"`      // nil: none
	Hosts               []string        `json:"hosts,omitzero"`                 // nil: not given; []: no host
	Percent             int             `json:"percent,omitzero"`               // of the selected hosts of the change; 0: all
	MaxConcurrent       int             `json:"max_concurrent,omitzero"`        // hosts under way at once; 0: any number
	ReadyPercent        int             `json:"ready_percent"`                  // of the clusters, without those that may fail
	MaxFailed           int             `json:"max_failed,omitzero"`            // clusters that may fail
	Soak                time.Duration   `json:"soak,omitzero"`
	Approval            bool            `json:"approval,omitzero"`
	Windows             gate.Windows    `json:"-"` // besides those of the rollout; they do not change the stage

	types, clusters *fleet.Requirements
}

func (s *Settings) mark() string {
	text, _ := json.Marshal(s.Stages) // never fails: every field has a JSON form
	return gate.Content(string(text))
}

// selects reports whether the stage names hosts; otherwise it takes the remaining ones.
func (s *Stage) selects() bool {
	return s.ClusterTypeSelector != nil || s.ClusterSelector != nil || s.Hosts != nil
}

// matches reports whether all selectors match. A selector of clusters matches no cluster type.
func (s *Stage) matches(name string, host *FleetHost) bool {
	if !s.selects() || slices.Contains(s.Hosts, name) {
		return true
	}
	if s.types == nil && s.clusters == nil {
		return false
	}
	if s.clusters != nil && (!host.IsCluster || !s.clusters.Matches(host.Labels)) {
		return false
	}
	return s.types == nil || s.types.Matches(host.TypeLabels)
}

// FolderHold keeps folders unchanged.
type FolderHold struct {
	DeploymentTargets []string // nil: all
	Hosts             []string // nil: all
	Reason            string
	Until             time.Time // zero: until it is removed
}

func (h *FolderHold) holds(key folder.Key, now time.Time) bool {
	return (h.Until.IsZero() || now.Before(h.Until)) &&
		(h.DeploymentTargets == nil || slices.Contains(h.DeploymentTargets, key.DeploymentTarget)) &&
		(h.Hosts == nil || slices.Contains(h.Hosts, key.Host))
}

// defaultFailedFor is the default with RollBack.
const defaultFailedFor = 5 * time.Minute

// Decode reads the attribute rollout. known is false while a part is unknown.
func Decode(value any) (settings *Settings, known bool, findings fleet.Findings) {
	r := &fleet.Reader{}
	o := r.Object(SettingsTable, nil, value)
	if o == nil {
		return nil, false, r.Findings
	}
	s := &Settings{}
	o.Require("stages", "is required: a list of stages, which may be empty")
	s.Stages = fleet.ReadList(o, "stages", decodeStage)
	s.checkStages(o)
	s.RollBack = o.OneOf("on_failure") == rollBack
	s.SkipUnknown = o.OneOf("unknown") == skip
	s.ProgressDeadline = fleet.ReadDuration(o, "progress_deadline", gate.MaxDuration)
	if s.FailedFor = fleet.ReadDuration(o, "failed_for", gate.MaxDuration); !o.Has("failed_for") && s.RollBack {
		s.FailedFor = defaultFailedFor
	}
	s.Windows = fleet.ReadList(o, "windows", gate.DecodeWindow)
	s.Approvals = o.Texts("approvals")
	for i, approval := range s.Approvals {
		if problem := gate.Problem(approval); problem != "" {
			r.Report(o.At("approvals").Index(i), "%q %s", approval, problem)
		}
	}
	s.Expedite = o.Texts("expedite")
	o.Finish()
	return s, !r.Unknown, r.Findings
}

func decodeStage(o *fleet.ObjectReader) Stage {
	s := Stage{
		Name:                o.Required("name"),
		ClusterTypeSelector: fleet.ReadSelector(o, "cluster_type_selector"), ClusterSelector: fleet.ReadSelector(o, "cluster_selector"),
		Hosts: o.Texts("hosts"), Percent: o.Int("percent"), MaxConcurrent: o.Int("max_concurrent"),
		ReadyPercent: o.Int("ready_percent"), MaxFailed: o.Int("max_failed"),
		Soak: fleet.ReadDuration(o, "soak", gate.MaxDuration), Approval: o.Bool("approval"),
		Windows: fleet.ReadList(o, "windows", gate.DecodeWindow),
	}
	s.types, s.clusters = compiled(s.ClusterTypeSelector), compiled(s.ClusterSelector)
	return s
}

func compiled(selector *fleet.Selector) *fleet.Requirements {
	if selector == nil {
		return nil
	}
	requirements, _ := selector.Compile() // ReadSelector has checked it
	return &requirements
}

func (s *Settings) checkStages(o *fleet.ObjectReader) {
	if len(s.Stages) > maxStages {
		o.Report("stages", "has %d stages, more than %d", len(s.Stages), maxStages)
	}
	seen, takesAll := map[string]bool{}, ""
	for _, stage := range s.Stages {
		if stage.Name != "" && seen[stage.Name] {
			o.Report("stages", "has two stages with the name %q; give each its own", stage.Name)
		}
		seen[stage.Name] = true
		if takesAll != "" {
			o.Report("stages", "the stage %q comes after %q, which takes all remaining hosts; put it before, or remove it", stage.Name, takesAll)
			takesAll = ""
		}
		if !stage.selects() && (stage.Percent == 0 || stage.Percent == 100) {
			takesAll = stage.Name
		}
	}
}

// DecodeHolds reads the attribute holds.
func DecodeHolds(value any) (holds []FolderHold, known bool, findings fleet.Findings) {
	r := &fleet.Reader{}
	for _, o := range r.List(HoldTable, nil, value) {
		hold := FolderHold{
			DeploymentTargets: o.Texts("deployment_targets"), Hosts: o.Texts("hosts"), Reason: fleet.ReadOpenText(o, "reason"),
			Until: fleet.ReadTime(o, "until"),
		}
		o.Finish()
		holds = append(holds, hold)
	}
	return holds, !r.Unknown, r.Findings
}

// CheckNames reports names that are neither in the fleet nor deployed.
func CheckNames(
	settings *Settings, holds []FolderHold, hosts map[string]*FleetHost, wanted, deployed folder.Trees,
) (ofRollout, ofHolds fleet.Findings) {
	knownHosts, knownTargets := map[string]bool{}, map[string]bool{}
	for host := range hosts {
		knownHosts[host] = true
	}
	for _, trees := range []folder.Trees{wanted, deployed} {
		for host, targets := range trees {
			knownHosts[host] = true
			for target := range targets {
				knownTargets[target] = true
			}
		}
	}
	check := func(findings *fleet.Findings, path *fleet.Path, names []string, known map[string]bool, what string) {
		for i, name := range names {
			if known[name] {
				continue
			}
			findings.Report(path.Index(i), "there is no %s %q%s", what, name, fleet.DidYouMean(name, slices.Sorted(maps.Keys(known))))
		}
	}
	var root *fleet.Path
	if settings != nil {
		for _, stage := range settings.Stages {
			check(&ofRollout, root.Attribute("stages").Key(stage.Name).Attribute("hosts"), stage.Hosts, knownHosts, "host")
		}
		targets := make([]string, len(settings.Expedite))
		for i, text := range settings.Expedite {
			targets[i], _, _ = strings.Cut(text, "@")
		}
		check(&ofRollout, root.Attribute("expedite"), targets, knownTargets, "deployment target")
	}
	for i, hold := range holds {
		at := root.Index(i)
		check(&ofHolds, at.Attribute("hosts"), hold.Hosts, knownHosts, "host")
		check(&ofHolds, at.Attribute("deployment_targets"), hold.DeploymentTargets, knownTargets, "deployment target")
	}
	return ofRollout, ofHolds
}

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
