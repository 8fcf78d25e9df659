package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Values is everything that a decision about the values of clusters depends on. A value is text: the canonical JSON of what
// it is. The rollout is that of one deployment target, with the name of the rollout, whose hosts are the clusters of the
// fleet; a folder stands for a value. Other than a folder, a value is always there: a new cluster has what is released.
type Values struct {
	Name string
	Now  time.Time // of the evidence
	// Given is when the values are given, as a clock says: a plan may be applied long after its evidence. Zero in a plan. No
	// decision of this step depends on it.
	Given    time.Time
	Wanted   ByCluster
	Hosts    map[string]*Host // the clusters of the fleet, each with itself as its only cluster
	Settings *Settings
	Holds    []Hold
	// Proof says whether a cluster has a value; nil: nothing is known of clusters.
	Proof func(cluster, value string) Given
	// Reports returns what is known of clusters beside that, as [Input] has it; nil where there are no reports, and only time
	// counts. given says by Proof whether a cluster has what it was given.
	Reports func(in Input, given func(cluster string, key folder.Key) Report) func(cluster string, key folder.Key) Report
	// Released is what clusters have that were given no value yet. It is not needed for what is known of them otherwise.
	Released ByCluster
	// Memory is what the step before has left; nil where there is none, or where it was lost.
	Memory *Memory
}

// ByCluster is a value for each cluster: one for all, or some for each.
type ByCluster struct {
	All     string            // "" where each cluster has its own, or none
	Each    map[string]string // before All
	Unknown bool              // it is not known yet
}

// Of is the value of a cluster; "" where it has none.
func (b ByCluster) Of(cluster string) string {
	if value, ok := b.Each[cluster]; ok {
		return value
	}
	return b.All
}

// Given is what is known of the value of a cluster.
type Given struct {
	// Heard says that the cluster is there, by what it says of itself.
	Heard bool
	// Known says that the cluster has said what is needed to tell whether it has the value, and Has whether it has.
	Known, Has bool
	// Message says why it is not known, or why it has not.
	Message string
}

// Memory is what a step leaves for the next. There may be thousands of clusters.
type Memory struct {
	Rollout State `json:"rollout"` // its target has the name ""
	// Given is what clusters were given, by name.
	Given map[string]Gift `json:"given"`
	// Before is what clusters had before the change that is under way, by name, by the short name of the value.
	Before map[string]string `json:"before,omitempty"`
	// Released is the value that all stages have proven last, by its short name; "" where it is not one for all.
	Released string `json:"released,omitempty"`
	// Contents are the values by their short names.
	Contents map[string]string `json:"contents"`
}

// UnmarshalJSON refuses what no step leaves: a memory may have been edited, or damaged. What is left out of it would be new in the
// fleet, and be given values at once.
func (m *Memory) UnmarshalJSON(text []byte) error {
	type plain Memory
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	if m.Given == nil {
		return errors.New("it does not say what clusters were given")
	}
	for name, value := range m.Contents {
		if short(value) != name {
			return fmt.Errorf("a value is not the one that its name %q says", name)
		}
	}
	has := func(name string) bool { return m.Contents[name] != "" }
	complete := m.Released == "" || has(m.Released)
	for _, gift := range m.Given {
		complete = complete && has(gift.Value)
	}
	if target := m.Rollout.Targets[""]; target != nil {
		for cluster, host := range target.Hosts {
			complete = complete && (host.From == "" || has(m.Before[cluster]))
		}
	}
	if !complete {
		return errors.New("a value is missing")
	}
	return nil
}

// Gift is a value that a cluster was given.
type Gift struct {
	Value string    `json:"value"` // its short name
	Since time.Time `json:"since"`
}

// ValuesOutcome is what clusters have after this step.
type ValuesOutcome struct {
	*Outcome
	// Values are by cluster; "" is one that is not known yet.
	Values map[string]string
	// Before is what the clusters had, as far as that is known; those that had nothing are not in it.
	Before map[string]string
	// Left are clusters that had a value and have left the fleet, in order.
	Left   []string
	Memory *Memory
	// Unplaced are clusters without a former value that have another one than is wanted, and than is released, in order.
	// Nothing may be given as long as there are any.
	Unplaced []string
	// Others are clusters that are new in the fleet and have another value than they are given, in order.
	Others []string
	// AtOnce are clusters that get what is wanted in this step since nothing is known of them, in order.
	AtOnce []string
}

// run of values: what is found out on the way to the input of [Advance].
type values struct {
	Values
	memory   *Memory // of this step
	deployed map[string]string
	first    map[string]string // what new clusters get where the rollout gives them nothing
	records  map[folder.Key]Record
	out      *ValuesOutcome
}

// AdvanceValues decides one step: which value each cluster has now.
func AdvanceValues(in Values) *ValuesOutcome {
	v := &values{
		Values: in, deployed: map[string]string{}, first: map[string]string{}, records: map[folder.Key]Record{},
		memory: &Memory{Given: map[string]Gift{}, Before: map[string]string{}, Contents: map[string]string{}},
		out:    &ValuesOutcome{Outcome: &Outcome{}, Values: map[string]string{}, Before: map[string]string{}},
	}
	if in.Memory == nil {
		v.begin()
	} else {
		v.remember()
	}
	switch {
	case in.Wanted.Unknown:
		v.waitForWanted()
	case len(v.out.Unplaced) == 0:
		v.advance()
	}
	return v.out
}

// remember finds what clusters have, and what new ones get.
func (v *values) remember() {
	for _, cluster := range slices.Sorted(maps.Keys(v.Memory.Given)) {
		if v.Hosts[cluster] == nil {
			v.out.Left = append(v.out.Left, cluster)
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(v.Hosts)) {
		gift, ok := v.Memory.Given[cluster]
		if ok {
			value := v.Memory.Contents[gift.Value]
			v.deployed[cluster], v.out.Before[cluster] = value, value
			v.records[v.key(cluster)] = Record{Tree: short(value), Changed: gift.Since}
			continue
		}
		value := v.Released.Each[cluster]
		if value == "" {
			value = v.Memory.Contents[v.Memory.Released]
		}
		if value == "" {
			value = v.Wanted.Of(cluster)
		}
		if value == v.Wanted.Of(cluster) { // nothing is to be rolled out on it
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

// begin finds what clusters have where nothing was given yet, or where that was lost.
func (v *values) begin() {
	for _, cluster := range slices.Sorted(maps.Keys(v.Hosts)) {
		wanted, released := v.Wanted.Of(cluster), v.Released.Of(cluster)
		var is Given
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

// waitForWanted decides what does not depend on the wanted values: clusters that are held keep theirs.
func (v *values) waitForWanted() {
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

func (v *values) key(cluster string) folder.Key {
	return folder.Key{Host: cluster, DeploymentTarget: v.Name}
}

// short is the short name of a value, which stands for the tree of a folder.
func short(value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:8])
}

// trees are values as folders.
func (v *values) trees(of map[string]string) folder.Trees {
	trees := make(folder.Trees, len(of))
	for cluster, value := range of {
		trees[cluster] = map[string]string{v.Name: short(value)}
	}
	return trees
}

func (v *values) advance() {
	wanted := make(map[string]string, len(v.Hosts))
	for cluster := range v.Hosts {
		wanted[cluster] = v.Wanted.Of(cluster)
	}
	in := Input{
		Now: v.Now, Wanted: v.trees(wanted), Deployed: v.trees(v.deployed), Hosts: v.Hosts, Settings: v.Settings, Holds: v.Holds,
		Records: v.records, Lost: v.Memory == nil, Remedy: "Set released, or want another value",
	}
	in.Tip = tip(in.Deployed)
	contents := map[string]string{short(v.Released.All): v.Released.All, short(v.Wanted.All): v.Wanted.All}
	for _, of := range []map[string]string{wanted, v.deployed, v.first, v.Released.Each} {
		for _, value := range of {
			contents[short(value)] = value
		}
	}
	if v.Memory != nil {
		maps.Copy(contents, v.Memory.Contents)
		in.State = &State{Stages: v.Memory.Rollout.Stages, Targets: map[string]*Target{}}
		if target := v.Memory.Rollout.Targets[""]; target != nil { // a rollout may have another name now
			in.State.Targets[v.Name] = target
		}
	}
	in.Back = v.back(in.State, in.Tip, in.Deployed)
	if v.Reports != nil {
		in.Reports = v.Reports(in, v.given)
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
		gift := Gift{Value: tree, Since: v.Now.Add(time.Second)} // it is given after the evidence, whose times are whole seconds
		if v.Memory != nil && v.Memory.Given[cluster].Value == tree {
			gift = v.Memory.Given[cluster]
		} else {
			if record := v.records[v.key(cluster)]; v.Memory == nil && record.Tree == tree {
				gift.Since = record.Changed
			}
			gift.Since = verdict.Latest(gift.Since, v.Given)
		}
		v.memory.Given[cluster] = gift
	}
	v.note(in, contents)
}

// back is what clusters had before the changes that a state knows. Of those that have what is wanted after a state was lost it is
// what is released, if that is known of all of them.
func (v *values) back(state *State, tip string, deployed folder.Trees) map[string]folder.Trees {
	back := map[string]folder.Trees{tip: deployed}
	released, complete := map[string]string{}, true
	release := func(cluster string) {
		value := v.Released.Of(cluster)
		released[cluster] = value
		complete = complete && value != "" && value != v.Wanted.Of(cluster)
	}
	if state == nil {
		for key := range v.records {
			release(key.Host)
		}
	} else if target := state.Targets[v.Name]; target != nil {
		for cluster, host := range target.Hosts {
			if _, ok := v.Hosts[cluster]; ok && host.From == "" {
				release(cluster)
			} else if ok && host.From != tip {
				if back[host.From] == nil {
					back[host.From] = folder.Trees{}
				}
				folder.Put(back[host.From], v.key(cluster), v.Memory.Before[cluster])
			}
		}
	}
	if complete && len(released) > 0 {
		back[""] = v.trees(released)
	}
	return back
}

// tip names what clusters have: the same values have the same name.
func tip(trees folder.Trees) string {
	texts := make([]string, 0, 2*len(trees))
	for _, key := range trees.Keys() {
		texts = append(texts, key.Host, trees[key.Host][key.DeploymentTarget])
	}
	return gate.Content(texts...)
}

// note keeps what the next step needs.
func (v *values) note(in Input, contents map[string]string) {
	v.out.Memory = v.memory
	m, state := v.memory, v.out.State
	m.Rollout.Stages = state.Stages
	used := map[string]bool{}
	target := state.Targets[v.Name]
	if target != nil {
		m.Rollout.Targets = map[string]*Target{"": target}
		for cluster, host := range target.Hosts {
			switch {
			case host.From == "":
				continue
			case host.From == in.Tip && in.Deployed.Has(cluster, v.Name):
				m.Before[cluster] = in.Deployed[cluster][v.Name]
			case host.From == in.Tip:
				m.Before[cluster] = short(v.first[cluster])
			default:
				m.Before[cluster] = v.Memory.Before[cluster]
			}
			used[m.Before[cluster]] = true
		}
	}
	switch {
	case v.Memory != nil:
		m.Released = v.Memory.Released
	case v.Released.All != "":
		m.Released = short(v.Released.All)
	case v.Wanted.Each == nil && len(v.records) == len(v.Hosts): // all have it, whether it is proven or not
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
	for _, gift := range m.Given {
		used[gift.Value] = true
	}
	for name, is := range used {
		if is {
			m.Contents[name] = contents[name]
		}
	}
}

// given is what is known of the value of a cluster, in the form of a folder: what has it is ready as far as that goes.
func (v *values) given(cluster string, key folder.Key) Report {
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
