package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Values has everything that a decision about values of clusters depends on. A value is canonical JSON. The engine treats
// clusters as hosts of one deployment target, and values as folders. A new cluster gets the released value.
type Values struct {
	Name string
	Now  time.Time // of the evidence
	// Applied is the time of the apply; zero in a plan. No decision depends on it.
	Applied  time.Time
	Wanted   ByCluster
	Hosts    map[string]*FleetHost // of the fleet, each with itself as its only cluster
	Settings *Settings
	Holds    []FolderHold
	// Proof reports whether a cluster has a value; nil: unknown.
	Proof func(cluster, value string) Observed
	// Reports returns the other reports; nil: only time counts.
	Reports func(in StepInput, observed func(cluster string, key folder.Key) Report) func(cluster string, key folder.Key) Report
	// Released has the values before the first assignment.
	Released ByCluster
	// Memory is the result of the step before; nil if there is none, or it was lost.
	Memory *Memory
}

// ByCluster is one value for all clusters, or one for each.
type ByCluster struct {
	All     string            // "" if each cluster has its own, or none
	Each    map[string]string // overrides All
	Unknown bool
}

// Value returns the value of a cluster; "" if it has none.
func (b ByCluster) Value(cluster string) string {
	if value, ok := b.Each[cluster]; ok {
		return value
	}
	return b.All
}

// Observed reports whether a cluster runs a value.
type Observed struct {
	// Heard reports whether the cluster has reported anything.
	Heard bool
	// Known reports whether that decides Has.
	Known, Has bool
	Message    string
}

// Memory has the values of all clusters, possibly thousands, for the next step.
type Memory struct {
	Rollout  StepState                `json:"rollout"` // its target has the name ""; in place of commits, it has short names of values
	Assigned map[string]AssignedValue `json:"given"`
	// Released is the short name of the last proven value; "" if clusters have different values.
	Released string            `json:"released,omitempty"`
	Contents map[string]string `json:"contents"`
}

// UnmarshalJSON refuses an edited or damaged memory: missing clusters would be new, and get values at once.
func (m *Memory) UnmarshalJSON(text []byte) error {
	type plain Memory
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	if m.Assigned == nil {
		return errors.New("it does not say what clusters were given")
	}
	for name, value := range m.Contents {
		if short(value) != name {
			return fmt.Errorf("a value is not the one that its name %q says", name)
		}
	}
	has := func(name string) bool { return m.Contents[name] != "" }
	complete := m.Released == "" || has(m.Released)
	for _, assigned := range m.Assigned {
		complete = complete && has(assigned.Value)
	}
	if target := m.Rollout.Targets[""]; target != nil {
		for _, host := range target.Hosts {
			complete = complete && (host.From == "" || has(host.From))
		}
	}
	if !complete {
		return errors.New("a value is missing")
	}
	return nil
}

// AssignedValue is a value with the time of its assignment.
type AssignedValue struct {
	Value string    `json:"value"` // its short name
	Since time.Time `json:"since"`
}

// ValuesOutcome has the values of clusters after a step.
type ValuesOutcome struct {
	*Outcome
	// Values has the values by cluster, "" while unknown.
	Values map[string]string
	// Before has the known values before the step.
	Before map[string]string
	// Left lists clusters that have left the fleet.
	Left   []string
	Memory *Memory
	// Unplaced lists clusters without a known former value that run neither the wanted nor the released one. They prevent any
	// assignment.
	Unplaced []string
	// Others lists new clusters that run another value.
	Others []string
	// AtOnce lists clusters that get the wanted value now because nothing is known of them.
	AtOnce []string
}

type valuesStep struct {
	Values
	memory   *Memory
	deployed map[string]string
	first    map[string]string // values of new clusters that the rollout does not reach
	records  map[folder.Key]Record
	out      *ValuesOutcome
}

// AdvanceValues decides the value of each cluster in one step.
func AdvanceValues(in Values) *ValuesOutcome {
	v := &valuesStep{
		Values: in, deployed: map[string]string{}, first: map[string]string{}, records: map[folder.Key]Record{},
		memory: &Memory{Assigned: map[string]AssignedValue{}, Contents: map[string]string{}},
		out:    &ValuesOutcome{Outcome: &Outcome{}, Values: map[string]string{}, Before: map[string]string{}},
	}
	if in.Memory == nil {
		v.startWithoutMemory()
	} else {
		v.readMemory()
	}
	switch {
	case in.Wanted.Unknown:
		v.waitForWanted()
	case len(v.out.Unplaced) == 0:
		v.advance()
	}
	return v.out
}

func (v *valuesStep) readMemory() {
	for _, cluster := range slices.Sorted(maps.Keys(v.Memory.Assigned)) {
		if v.Hosts[cluster] == nil {
			v.out.Left = append(v.out.Left, cluster)
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(v.Hosts)) {
		assigned, ok := v.Memory.Assigned[cluster]
		if ok {
			value := v.Memory.Contents[assigned.Value]
			v.deployed[cluster], v.out.Before[cluster] = value, value
			v.records[v.key(cluster)] = Record{Tree: short(value), Changed: assigned.Since}
			continue
		}
		value := v.Released.Each[cluster]
		if value == "" {
			value = v.Memory.Contents[v.Memory.Released]
		}
		if value == "" {
			value = v.Wanted.Value(cluster)
		}
		if value == v.Wanted.Value(cluster) { // there is nothing to roll out
			v.deployed[cluster] = value
		}
		v.first[cluster] = value
		if v.Proof != nil && value != "" {
			if is := v.Proof(cluster, value); is.Known && !is.Has {
				v.out.Others = append(v.out.Others, cluster)
			}
		}
	}
}

// startWithoutMemory finds the present values by Proof and Released.
func (v *valuesStep) startWithoutMemory() {
	for _, cluster := range slices.Sorted(maps.Keys(v.Hosts)) {
		wanted, released := v.Wanted.Value(cluster), v.Released.Value(cluster)
		var is Observed
		if v.Proof != nil {
			is = v.Proof(cluster, wanted)
		}
		_, explicit := v.Released.Each[cluster]
		switch {
		case is.Has:
			released = wanted
		case explicit:
		case released != "" && is.Known && !v.Proof(cluster, released).Has, released == "" && is.Heard:
			v.out.Unplaced = append(v.out.Unplaced, cluster)
		case released == "":
			v.out.AtOnce = append(v.out.AtOnce, cluster)
			released = wanted
		}
		if len(v.out.AtOnce) == 0 || v.out.AtOnce[len(v.out.AtOnce)-1] != cluster {
			v.out.Before[cluster] = released
		}
		v.deployed[cluster], v.first[cluster] = released, released
		if released == wanted {
			v.records[v.key(cluster)] = Record{Tree: short(wanted), Changed: v.Now}
		}
	}
}

// waitForWanted keeps values of held clusters.
func (v *valuesStep) waitForWanted() {
	v.out.Undecided, v.out.AtOnce, v.out.Unplaced = true, nil, nil
	for cluster := range v.Hosts {
		v.out.Values[cluster] = ""
		for i := range v.Holds {
			if v.Memory != nil && v.Holds[i].holds(v.key(cluster), v.Now) {
				v.out.Values[cluster] = v.out.Before[cluster]
			}
		}
	}
}

func (v *valuesStep) key(cluster string) folder.Key {
	return folder.Key{Host: cluster, DeploymentTarget: v.Name}
}

func short(value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:8])
}

func (v *valuesStep) trees(of map[string]string) folder.Trees {
	trees := make(folder.Trees, len(of))
	for cluster, value := range of {
		trees[cluster] = map[string]string{v.Name: short(value)}
	}
	return trees
}

func (v *valuesStep) advance() {
	wanted := make(map[string]string, len(v.Hosts))
	for cluster := range v.Hosts {
		wanted[cluster] = v.Wanted.Value(cluster)
	}
	in := StepInput{
		Now: v.Now, Wanted: v.trees(wanted), Deployed: v.trees(v.deployed), Hosts: v.Hosts, Settings: v.Settings, Holds: v.Holds,
		Records: v.records, Lost: v.Memory == nil, Remedy: "Set released, or want another value", Tip: presentValues,
	}
	contents := map[string]string{short(v.Released.All): v.Released.All, short(v.Wanted.All): v.Wanted.All}
	for _, of := range []map[string]string{wanted, v.deployed, v.first, v.Released.Each} {
		for _, value := range of {
			contents[short(value)] = value
		}
	}
	if v.Memory != nil {
		maps.Copy(contents, v.Memory.Contents)
		in.State = &StepState{Stages: v.Memory.Rollout.Stages, Targets: map[string]*ChangeState{}}
		if target := v.Memory.Rollout.Targets[""]; target != nil { // the rollout may have been renamed
			in.State.Targets[v.Name] = target
		}
	}
	in.Back = v.back(in.State, in.Deployed)
	if v.Reports != nil {
		in.Reports = v.Reports(in, v.reportObserved)
	}
	out := Advance(in)
	v.out.Outcome = out
	after := out.Decisions.Trees(in.Deployed)
	for cluster := range v.Hosts {
		tree, ok := after[cluster][v.Name]
		if value, had := v.deployed[cluster]; !ok && had {
			tree = short(value)
		} else if !ok {
			tree = short(v.first[cluster])
		}
		v.out.Values[cluster] = contents[tree]
		assigned := AssignedValue{Value: tree, Since: v.Now.Add(time.Second)} // after the evidence, whose times are whole seconds
		if v.Memory != nil && v.Memory.Assigned[cluster].Value == tree {
			assigned = v.Memory.Assigned[cluster]
		} else {
			if record := v.records[v.key(cluster)]; v.Memory == nil && record.Tree == tree {
				assigned.Since = record.Changed
			}
			assigned.Since = verdict.Latest(assigned.Since, v.Applied)
		}
		v.memory.Assigned[cluster] = assigned
	}
	v.writeMemory(contents)
}

// presentValues stands for the short names of the present values, until a step is done.
const presentValues = "present"

// back returns the values before the changes; after a lost state the released ones, if all are known.
func (v *valuesStep) back(state *StepState, deployed folder.Trees) map[string]folder.Trees {
	back := map[string]folder.Trees{presentValues: deployed}
	released, complete := map[string]string{}, true
	release := func(cluster string) {
		value := v.Released.Value(cluster)
		released[cluster] = value
		complete = complete && value != "" && value != v.Wanted.Value(cluster)
	}
	if state == nil {
		for key := range v.records {
			release(key.Host)
		}
	} else if target := state.Targets[v.Name]; target != nil {
		for cluster, host := range target.Hosts {
			if _, ok := v.Hosts[cluster]; ok && host.From == "" {
				release(cluster)
			} else if ok {
				if back[host.From] == nil {
					back[host.From] = folder.Trees{}
				}
				folder.Put(back[host.From], v.key(cluster), host.From)
			}
		}
	}
	if complete && len(released) > 0 {
		back[""] = v.trees(released)
	}
	return back
}

func (v *valuesStep) writeMemory(contents map[string]string) {
	v.out.Memory = v.memory
	m, state := v.memory, v.out.State
	m.Rollout.Stages = state.Stages
	used := map[string]bool{}
	target := state.Targets[v.Name]
	if target != nil {
		m.Rollout.Targets = map[string]*ChangeState{"": target}
		for cluster, host := range target.Hosts {
			if host.From == presentValues {
				host.From = short(cmp.Or(v.deployed[cluster], v.first[cluster]))
			}
			used[host.From] = host.From != ""
		}
	}
	switch {
	case v.Memory != nil:
		m.Released = v.Memory.Released
	case v.Released.All != "":
		m.Released = short(v.Released.All)
	case v.Wanted.Each == nil && len(v.records) == len(v.Hosts): // all have it, proven or not
		m.Released = short(v.Wanted.All)
	}
	halts := len(v.out.Progress) > 0 && v.out.Progress[0].IsHalted()
	if len(v.Hosts) > 0 && (v.out.RolledOut || target != nil && target.Passed > len(v.Settings.Stages) && !halts) {
		m.Released = ""
		if v.Wanted.Each == nil {
			m.Released = short(v.Wanted.All)
		}
	}
	used[m.Released] = m.Released != ""
	for _, assigned := range m.Assigned {
		used[assigned.Value] = true
	}
	for name, is := range used {
		if is {
			m.Contents[name] = contents[name]
		}
	}
}

// reportObserved returns the report by Proof.
func (v *valuesStep) reportObserved(cluster string, key folder.Key) Report {
	value := v.deployed[cluster]
	is := v.Proof(cluster, value)
	report := Report{Known: is.Known, Source: "proof", Status: verdict.Status{Verdict: verdict.Unknown, Message: "proof: " + is.Message}}
	switch {
	case is.Has:
		report.Tree, report.Verdict = short(value), verdict.Ready
	case is.Known:
		report.Verdict = verdict.Progressing
	}
	return report
}
