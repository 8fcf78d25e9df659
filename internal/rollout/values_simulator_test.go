package rollout_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// TestSimulatedRolloutsOfValues compares rollouts of values with the same oracle as rollouts of folders. The value assigned to a
// cluster takes the place of the tree of a host.
func TestSimulatedRolloutsOfValues(t *testing.T) {
	t.Parallel()
	simulate(t, newValuesWorld, 1887, 8641)
}

// simValues is the state of a rollout of values.
type simValues struct {
	each         bool // each cluster has its own values
	released     string
	given        rollout.ByCluster // the argument released
	fresh        map[string]bool   // clusters that joined since the previous step without the wanted value
	memory, next *rollout.Memory
}

func newValuesWorld(t *testing.T, seed uint64) *simWorld {
	t.Helper()
	w := newEmptyWorld(t, seed)
	w.values = &simValues{each: w.chance(4)}
	w.targets, w.oracle["t0"] = []string{"t0"}, newTargetOracle()
	w.oracle["t0"].version = "-t0-0"
	if w.chance(2) && !w.values.each { // the clusters existed before the rollout
		w.values.released = "-t0-0"
	}
	for range 2 + w.random.IntN(5) {
		w.addHost()
	}
	if w.values.released != "" {
		for name, cluster := range w.clusters {
			key := folder.Key{Host: name, DeploymentTarget: "t0"}
			cluster.tree[key], cluster.verdict[key], cluster.since[key] = w.values.released, verdict.Ready, w.now
		}
	}
	w.commits = []folder.Trees{{}}
	return w
}

func (w *simWorld) isUniform() bool { return w.values != nil && !w.values.each }

// content returns the content of a version on a host.
func (w *simWorld) content(host, version string) string {
	if w.isUniform() {
		return version
	}
	return host + version
}

// isExisting reports whether the host existed before this step.
func (w *simWorld) isExisting(host string) bool {
	_, known := w.repo[host]
	return known && (w.values == nil || !w.values.fresh[host])
}

// placeValues computes the value of each cluster before a step if it has no assigned value, or if the memory is lost.
func (w *simWorld) placeValues() {
	v := w.values
	v.fresh = map[string]bool{}
	w.lost = v.memory == nil || w.lost
	maps.DeleteFunc(w.repo, func(host string, _ map[string]string) bool { return w.hosts[host] == nil })
	if w.lost {
		v.memory, v.given = nil, rollout.ByCluster{All: v.released, Each: map[string]string{}}
	}
	o := w.oracle["t0"]
	for host := range w.hosts {
		key := folder.Key{Host: host, DeploymentTarget: "t0"}
		want, cluster := w.wanted[host]["t0"], w.clusters[host]
		_, had := w.repo[host]
		value, heard := v.released, !cluster.silent && cluster.tree[key] != ""
		switch {
		case !w.lost && had:
			continue
		case !w.lost && value == "", w.lost && heard && cluster.tree[key] == want:
			value = want
		case w.lost && heard && cluster.tree[key] != value, w.lost && v.each && cluster.tree[key] != "":
			value = cluster.tree[key] // people set released.each after the error
			v.given.Each[host] = value
		case value == "":
			value = want
		}
		v.fresh[host] = !had && value != want && !w.lost
		w.repo[host] = map[string]string{"t0": value}
		w.records[key] = rollout.Record{Tree: value, Changed: w.now.Add(time.Second)}
		if w.lost && value == want {
			w.records[key] = rollout.Record{Tree: value, Changed: w.now}
		}
		if w.lost && o.proven[host] != value {
			delete(o.proven, host)
		}
	}
	if w.lost && w.isUniform() && v.released == "" && w.isReleased("t0", &targetOracle{isIdle: true}) {
		v.released = o.version
	}
	w.commits = append(w.commits, w.repo.Clone())
}

// advanceValues decides a step of values, and returns it as a decision about folders.
func (w *simWorld) advanceValues(in rollout.StepInput) *rollout.Outcome {
	v := w.values
	values := rollout.Values{
		Name: "t0", Now: in.Now, Hosts: in.Hosts, Settings: in.Settings, Holds: in.Holds, Released: v.given, Memory: v.memory,
		Proof: func(cluster, value string) rollout.Observed {
			report := w.report(cluster, folder.Key{Host: cluster, DeploymentTarget: "t0"})
			return rollout.Observed{Heard: report.Known, Known: report.Known, Has: report.Known && report.Tree == value}
		},
		Reports: func(_ rollout.StepInput, given func(string, folder.Key) rollout.Report) func(string, folder.Key) rollout.Report {
			return func(cluster string, key folder.Key) rollout.Report {
				report := given(cluster, key)
				report.Status = w.report(cluster, key).Status
				return report
			}
		},
	}
	if v.each {
		values.Wanted.Each = map[string]string{}
		for host := range w.hosts {
			values.Wanted.Each[host] = w.wanted[host]["t0"]
		}
	} else {
		values.Wanted.All = w.oracle["t0"].version
	}
	if v.memory == nil { // clusters missing from released.each are reported
		without := values
		without.Released.Each = nil
		var unplaced []string
		for host := range v.given.Each {
			if cluster := w.clusters[host]; !cluster.silent {
				unplaced = append(unplaced, host)
			}
		}
		slices.Sort(unplaced)
		if out := rollout.AdvanceValues(without); !slices.Equal(out.Unplaced, unplaced) || len(unplaced) > 0 && len(out.Values) > 0 {
			w.t.Errorf("unplaced %v, want %v: %v", out.Unplaced, unplaced, out.Values)
		}
	}
	out := rollout.AdvanceValues(values)
	if v.next = out.Memory; len(out.Unplaced) > 0 || len(out.Values) != len(w.hosts) {
		w.t.Errorf("unplaced %v, values %v", out.Unplaced, out.Values)
	}
	decided := *out.Outcome
	decided.Decisions = rollout.Decisions{}
	for host, value := range out.Values {
		decision := rollout.Decision{Action: rollout.Write, Tree: value}
		if out.Decisions[host]["t0"].Action == rollout.RollBack {
			decision.Action = rollout.RollBack
		}
		if value == "" {
			w.t.Errorf("%s has no value", host)
		}
		decided.Decisions[host] = map[string]rollout.Decision{"t0": decision}
	}
	checkRoundTrip(w.t, decided.Progress)
	return &decided
}

// saveMemory writes the memory and reads it back for the next step.
func (v *simValues) saveMemory() {
	text, err := json.Marshal(v.next)
	read := &rollout.Memory{}
	if err == nil {
		err = json.Unmarshal(text, read)
	}
	again, _ := json.Marshal(read)
	if err != nil || !bytes.Equal(text, again) || !reflect.DeepEqual(read.Contents, v.next.Contents) {
		panic("the memory changes in a round trip")
	}
	v.memory, v.given = read, rollout.ByCluster{}
}

// noteReleased notes the value that all stages proved.
func (w *simWorld) noteReleased(out *rollout.Outcome) {
	o, all := w.oracle["t0"], true
	for stage := range len(w.settings.Stages) + 1 {
		all = all && o.passed[stage]
	}
	switch next := w.values.next; {
	case !w.isUniform():
	case o.possible != nil || w.percent: // only the decision shows whether the value is proven
		if released := next.Contents[next.Released]; released == o.version {
			w.values.released = released
		}
	case out.RolledOut || all && len(o.hosts) > 0 && !out.Progress[0].IsHalted():
		w.values.released = o.version
	}
}
