package rollout_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// fleets is how many random fleets the simulator drives; with -short a twentieth.
const fleets = 10_000

// TestSimulatedRollouts drives rollouts of random fleets, whose clusters become ready late, fail, flap, fall
// silent, join and leave while new content arrives at random, and holds each step to a naive oracle.
func TestSimulatedRollouts(t *testing.T) {
	t.Parallel()
	number := fleets
	if testing.Short() {
		number /= 20
	}
	var total tally
	for seed := range number {
		w := newWorld(t, uint64(seed))
		w.live()
		if t.Failed() {
			t.Fatalf("fleet %d, after %d steps", seed, w.steps)
		}
		total.add(w.tally)
	}
	t.Logf("%d fleets: %+v", number, total)
	if total.Written == 0 || total.RolledBack == 0 || total.Halted == 0 || total.Lost == 0 || total.Finished < number {
		t.Errorf("not everything happened: %+v", total)
	}
}

type tally struct{ Steps, Written, RolledBack, Halted, Lost, Finished, Contents, Removed int }

func (a *tally) add(b tally) {
	sum, more := reflect.ValueOf(a).Elem(), reflect.ValueOf(b)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}

// simCluster is a cluster of a host.
type simCluster struct {
	host   string
	silent bool
	// by key: what it has, since when it is as it is, and how it is
	tree    map[rollout.Key]string
	verdict map[rollout.Key]rollout.Verdict
	since   map[rollout.Key]time.Time
}

// world is a fleet, its repository, its clusters and its rollouts.
type world struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	steps  int
	quiet  bool // everybody is well, and nothing new comes
	tally

	settings rollout.Settings
	rings    map[string]int // of hosts
	percent  bool
	hosts    map[string]*rollout.Host
	clusters map[string]*simCluster
	wanted   rollout.Trees
	bad      map[string]bool // trees
	holds    []rollout.Hold
	targets  []string
	requires map[string]string // a deployment target requires another

	repo    rollout.Trees
	records map[rollout.Key]rollout.Record
	commits []rollout.Trees // by number
	state   *rollout.State
	lost    bool
	closed  bool // windows
	before  *rollout.Outcome

	oracle map[string]*naive
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		rings: map[string]int{}, hosts: map[string]*rollout.Host{}, clusters: map[string]*simCluster{},
		wanted: rollout.Trees{}, bad: map[string]bool{}, repo: rollout.Trees{}, records: map[rollout.Key]rollout.Record{},
		requires: map[string]string{}, oracle: map[string]*naive{},
	}
	w.settings = rollout.Settings{RollBack: w.chance(2), SkipUnknown: w.chance(3)}
	if w.chance(2) {
		w.settings.ProgressDeadline = 3 * time.Hour
	}
	w.percent = w.chance(5)
	for i := range 1 + w.random.IntN(3) {
		stage := ring(t, i)
		if w.chance(3) {
			stage.MaxConcurrent = 1 + w.random.IntN(2)
		}
		if w.chance(4) {
			stage.ReadyPercent = 50
		}
		if w.chance(5) {
			stage.MaxFailed = 1
		}
		if w.chance(2) {
			stage.Soak = time.Duration(w.random.IntN(90)) * time.Minute
		}
		stage.Approval = w.chance(8)
		if w.percent && i == 0 {
			stage = rollout.Stage{Name: "share", ReadyPercent: 100, Percent: 30}
		}
		w.settings.Stages = append(w.settings.Stages, stage)
	}
	for i := range 1 + w.random.IntN(3) {
		w.targets = append(w.targets, fmt.Sprintf("t%d", i))
		w.oracle[w.targets[i]] = newNaive()
	}
	if len(w.targets) > 1 && w.chance(3) {
		w.requires["t0"] = "t1"
	}
	for range 2 + w.random.IntN(5) {
		w.join()
	}
	w.commits = []rollout.Trees{{}}
	if w.chance(2) { // it began without a rollout
		for _, target := range w.targets {
			w.arrive(target, false)
		}
		w.repo = w.wanted.Clone()
		for _, key := range w.repo.Keys() {
			w.records[key] = rollout.Record{Tree: w.repo[key.Host][key.DeploymentTarget], Changed: w.now}
		}
		w.commits = append(w.commits, w.repo.Clone())
		w.state = &rollout.State{}
	}
	return w
}

// ring is a stage that selects hosts by a label.
func ring(t *testing.T, number int) rollout.Stage {
	t.Helper()
	settings, _, findings := rollout.Decode(map[string]any{"stages": []any{map[string]any{
		"name": fmt.Sprint(number), "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": fmt.Sprint(number)}},
	}}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return settings.Stages[0]
}

// closedWindows are not open in the years of the simulation.
func closedWindows(t *testing.T) gate.Windows {
	t.Helper()
	settings, _, findings := rollout.Decode(map[string]any{"stages": []any{}, "windows": []any{
		map[string]any{"kind": "allow", "schedule": "0 0 29 2 *", "duration": "1h"},
	}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return settings.Windows
}

func (w *world) chance(of int) bool { return w.random.IntN(of) == 0 }

func (w *world) join() {
	host := fmt.Sprintf("h%d", len(w.rings))
	w.rings[host] = w.random.IntN(len(w.settings.Stages) + 1)
	info := &rollout.Host{TypeLabels: fleet.Labels{"ring": fmt.Sprint(w.rings[host])}}
	for i := range w.random.IntN(3) {
		name := fmt.Sprintf("%s-%d", host, i)
		info.Clusters = append(info.Clusters, name)
		w.clusters[name] = &simCluster{
			host: host, tree: map[rollout.Key]string{}, verdict: map[rollout.Key]rollout.Verdict{}, since: map[rollout.Key]time.Time{},
		}
	}
	w.hosts[host], w.wanted[host] = info, map[string]string{}
	for _, target := range w.targets {
		if version := w.oracle[target].version; version != "" && !w.chance(4) {
			w.wanted[host][target] = host + version
		}
	}
}

func (w *world) leave() {
	if len(w.hosts) < 3 {
		return
	}
	host := slices.Sorted(maps.Keys(w.hosts))[w.random.IntN(len(w.hosts))]
	delete(w.hosts, host)
	delete(w.wanted, host)
	maps.DeleteFunc(w.clusters, func(_ string, c *simCluster) bool { return c.host == host })
}

// arrive brings new content, to all hosts of a target or to some, which now and then is bad.
func (w *world) arrive(target string, mayBeBad bool) {
	w.Contents++
	version := fmt.Sprintf("-%s-%d", target, w.Contents)
	bad := mayBeBad && w.chance(3)
	w.oracle[target].version = version
	all := w.chance(2) || w.quiet
	for _, host := range slices.Sorted(maps.Keys(w.hosts)) {
		_, has := w.wanted[host][target]
		switch {
		case has && w.chance(12) && mayBeBad:
			delete(w.wanted[host], target)
		case has && (all || w.chance(2)) || !has && w.chance(2):
			w.wanted[host][target] = host + version
			w.bad[host+version] = bad && !w.chance(3)
		}
	}
}

// live lets weeks pass, and in the end lets all become well.
func (w *world) live() {
	for range 12 + w.random.IntN(12) {
		w.happen()
		w.step()
		if w.t.Failed() {
			return
		}
	}
	w.quiet = true
	w.holds, w.bad = nil, map[string]bool{}
	for _, target := range w.targets {
		w.arrive(target, false)
	}
	// As the guide says: a run for each stage, and for each batch of one, and one to see the last proven. A
	// target that requires another has to wait for that.
	runs := 4
	for _, stage := range w.settings.Stages {
		runs++
		if stage.MaxConcurrent > 0 {
			runs += len(w.hosts) / stage.MaxConcurrent
		}
	}
	runs *= len(w.targets)
	for range runs {
		w.step()
		if w.t.Failed() {
			return
		}
		if w.before.RolledOut {
			break
		}
	}
	if !w.before.RolledOut || !reflect.DeepEqual(w.repo, w.wanted) {
		w.t.Errorf("after %d runs: %v\nwanted   %v\ndeployed %v", runs, w.before.Lines(), w.wanted, w.repo)
		return
	}
	w.Finished++
}

func (w *world) happen() {
	if w.chance(4) {
		w.arrive(w.targets[w.random.IntN(len(w.targets))], true)
	}
	if w.chance(10) {
		w.join()
	}
	if w.chance(14) {
		w.leave()
	}
	if w.chance(12) && len(w.hosts) > 0 {
		w.holds = []rollout.Hold{{DeploymentTargets: []string{w.targets[0]}, Hosts: []string{slices.Sorted(maps.Keys(w.hosts))[0]}}}
	} else if w.chance(3) {
		w.holds = nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		if w.chance(15) {
			w.clusters[name].silent = !w.clusters[name].silent
		}
	}
}

// pass lets an hour or so pass on the clusters.
func (w *world) pass() {
	w.now = w.now.Add(time.Duration(20+w.random.IntN(80)) * time.Minute)
	if w.quiet {
		w.now = w.now.Add(2 * time.Hour)
	}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		c := w.clusters[name]
		c.silent = c.silent && !w.quiet
		if !w.quiet && w.chance(6) {
			continue // it is slow
		}
		for _, target := range w.targets {
			key := rollout.Key{Host: c.host, DeploymentTarget: target}
			tree := w.repo[c.host][target]
			become := rollout.Ready
			switch {
			case w.bad[tree]:
				become = rollout.Failed
			case !w.quiet && w.chance(8):
				become = rollout.Progressing
			case !w.quiet && w.chance(25):
				become = rollout.Failed
			}
			if c.tree[key] != tree || c.verdict[key] != become {
				c.since[key] = w.now.Add(-10 * time.Minute)
				if w.quiet {
					c.since[key] = w.now.Add(-2 * time.Hour)
				}
			}
			c.tree[key], c.verdict[key] = tree, become
		}
	}
}

func (w *world) report(cluster string, key rollout.Key) rollout.Report {
	c := w.clusters[cluster]
	if c == nil || c.silent || c.verdict[key] == "" {
		return rollout.Report{Verdict: rollout.Unknown}
	}
	return rollout.Report{Known: true, Tree: c.tree[key], Verdict: c.verdict[key], Since: c.since[key]}
}

func (w *world) input() rollout.Input {
	in := rollout.Input{
		Now: w.now, Wanted: w.wanted, Deployed: w.repo, Hosts: w.hosts, Settings: &w.settings, Holds: w.holds,
		Reports: w.report, Records: w.records, State: w.state, Lost: w.lost, Tip: fmt.Sprint(len(w.commits) - 1), Back: map[string]rollout.Trees{},
	}
	if len(w.requires) > 0 {
		in.Requires = func(key rollout.Key) []rollout.Key {
			required, ok := w.requires[key.DeploymentTarget]
			if _, there := w.wanted[key.Host][required]; !ok || !there {
				return nil
			}
			return []rollout.Key{{Host: key.Host, DeploymentTarget: required}}
		}
	}
	return in
}

// advance asks for a decision, with the commits that it goes back to.
func (w *world) advance(in rollout.Input) *rollout.Outcome {
	out := rollout.Advance(in)
	if len(out.Missing) > 0 {
		in.Back = maps.Clone(in.Back)
	}
	for len(out.Missing) > 0 {
		for _, commit := range out.Missing {
			number, err := strconv.Atoi(commit)
			if err != nil {
				w.t.Fatal(err)
			}
			in.Back[commit] = w.commits[number]
		}
		out = rollout.Advance(in)
	}
	checkSaid(w.t, out)
	return out
}

// step is one run.
func (w *world) step() {
	w.pass()
	w.steps++
	w.Steps++
	w.settings.Approvals, w.settings.Windows = nil, nil
	if w.closed = !w.quiet && w.chance(12); w.closed {
		w.settings.Windows = closedWindows(w.t)
	}
	if w.before != nil && (w.quiet || w.chance(2)) {
		for _, p := range w.before.Progress {
			if p.Content != "" {
				w.settings.Approvals = append(w.settings.Approvals, gate.Mark(p.DeploymentTarget, p.Content))
			}
		}
	}
	if w.lost = w.chance(20) && w.repo.Count() > 0; w.lost {
		w.state = nil
		w.Lost++
	}
	in := w.input()
	out := w.advance(in)
	if w.chance(8) {
		if again := w.advance(in); !reflect.DeepEqual(out, again) {
			w.t.Errorf("the same input decides\n%+v\nand\n%+v", out, again)
		}
		w.checkAlone(in, out)
	}
	w.checkStep(out)
	w.apply(out)
	w.before = out
	if w.quiet || w.chance(4) { // nothing happens in between: then nothing is decided
		w.state, w.lost = out.State, false
		again := w.advance(w.input())
		if !w.mayBeProvenAtOnce() && (w.decides(again) || !reflect.DeepEqual(again.RollingOut(), out.RollingOut())) {
			w.t.Errorf("without anything new, %v became %v", out.RollingOut(), again.RollingOut())
		}
	}
	if w.state = out.State; w.chance(8) {
		w.state = w.remembered(out.State)
	}
}

// remembered is a state as the next process reads it.
func (w *world) remembered(state *rollout.State) *rollout.State {
	text, err := json.Marshal(state)
	if err != nil {
		w.t.Fatal(err)
	}
	read := &rollout.State{}
	if err := json.Unmarshal(text, read); err != nil {
		w.t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil || !bytes.Equal(again, text) || len(read.Targets) != len(state.Targets) {
		w.t.Errorf("%s is read as %s, %v", text, again, err)
	}
	for name, target := range state.Targets {
		if !reflect.DeepEqual(read.Targets[name], target) {
			w.t.Errorf("%+v is read as %+v", target, read.Targets[name])
		}
	}
	return read
}

// mayBeProvenAtOnce says whether what was just written may be proven by what was known already: some of a
// stage are enough.
func (w *world) mayBeProvenAtOnce() bool {
	for _, stage := range w.settings.Stages {
		if stage.ReadyPercent < 100 || stage.MaxFailed > 0 {
			return true
		}
	}
	return w.settings.SkipUnknown || len(w.requires) > 0 // and new hosts may get what is released
}

func (w *world) decides(out *rollout.Outcome) bool {
	return !reflect.DeepEqual(out.Decisions.Trees(w.repo), w.repo)
}

// checkAlone expects a target that requires nothing, and that nothing requires, to go as if it were alone.
func (w *world) checkAlone(in rollout.Input, out *rollout.Outcome) {
	if len(w.requires) > 0 {
		return
	}
	name := w.targets[0]
	only := func(trees rollout.Trees) rollout.Trees {
		made := rollout.Trees{}
		for host, targets := range trees {
			made[host] = map[string]string{}
			if tree, ok := targets[name]; ok {
				made[host][name] = tree
			}
		}
		return made
	}
	in.Wanted, in.Deployed = only(in.Wanted), only(in.Deployed)
	if in.State != nil {
		in.State = &rollout.State{Stages: in.State.Stages, Targets: map[string]*rollout.Target{}}
		if target := w.state.Targets[name]; target != nil {
			in.State.Targets[name] = target
		}
	}
	alone := w.advance(in)
	for host, targets := range out.Decisions {
		if alone.Decisions[host][name] != targets[name] {
			w.t.Errorf("alone, %s gets %+v on %s, and with others %+v", name, alone.Decisions[host][name], host, targets[name])
		}
	}
}

// apply commits what was decided, some minutes after the evidence was gathered.
func (w *world) apply(out *rollout.Outcome) {
	after := out.Decisions.Trees(w.repo)
	for host, targets := range after {
		for target, tree := range targets {
			if out.Decisions[host][target].Action == rollout.Keep && !w.repo.Has(host, target) {
				w.t.Errorf("%s/%s is kept, and not there", host, target)
			}
			_ = tree
		}
	}
	at := w.now.Add(time.Minute)
	changed := false
	for _, key := range append(after.Keys(), w.repo.Keys()...) {
		now, is := after[key.Host][key.DeploymentTarget]
		then, was := w.repo[key.Host][key.DeploymentTarget]
		switch {
		case is && now != then:
			w.records[key] = rollout.Record{Tree: now, Before: then, Changed: at}
			w.Written++
			changed = true
		case was && !is:
			delete(w.records, key)
			w.Removed++
			changed = true
		}
		if out.Decisions[key.Host][key.DeploymentTarget].Action == rollout.RollBack && now != then {
			w.RolledBack++
		}
	}
	w.repo = after
	if changed {
		w.commits = append(w.commits, after.Clone())
	}
}
