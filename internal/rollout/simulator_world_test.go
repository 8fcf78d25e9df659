package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

type simCluster struct {
	host   string
	silent bool
	// The applied trees, their verdicts, and the times of the last changes.
	tree    map[folder.Key]string
	verdict map[folder.Key]verdict.Verdict
	since   map[folder.Key]time.Time
}

// simWorld is a fleet, its repository, its clusters and its rollouts.
type simWorld struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	steps  int
	quiet  bool // all clusters are healthy, and no new content comes
	tally

	settings rollout.Settings
	rings    map[string]int // of hosts
	percent  bool
	hosts    map[string]*rollout.FleetHost
	clusters map[string]*simCluster
	wanted   folder.Trees
	bad      map[string]bool // trees
	holds    []rollout.FolderHold
	targets  []string
	requires map[string]string // required deployment targets

	repo    folder.Trees
	records map[folder.Key]rollout.Record
	commits []folder.Trees // by number
	state   *rollout.StepState
	lost    bool
	closed  bool         // the windows of the rollout
	shut    map[int]bool // stages with closed windows
	before  *rollout.Outcome

	oracle map[string]*targetOracle
	values *simValues // nil for a rollout of folders
}

func newFolderWorld(t *testing.T, seed uint64) *simWorld {
	w := newEmptyWorld(t, seed)
	for i := range 1 + w.random.IntN(3) {
		w.targets = append(w.targets, fmt.Sprintf("t%d", i))
		w.oracle[w.targets[i]] = newTargetOracle()
	}
	if len(w.targets) > 1 && w.chance(3) {
		w.requires["t0"] = "t1"
	}
	for range 2 + w.random.IntN(5) {
		w.addHost()
	}
	w.commits = []folder.Trees{{}}
	if w.chance(2) { // everything was deployed without a rollout
		for _, target := range w.targets {
			w.wantNewContent(target, false)
		}
		w.repo = w.wanted.Clone()
		for _, key := range w.repo.Keys() {
			w.records[key] = rollout.Record{Tree: w.repo[key.Host][key.DeploymentTarget], Changed: w.now}
		}
		w.commits = append(w.commits, w.repo.Clone())
		w.state = &rollout.StepState{}
	}
	return w
}

// newEmptyWorld returns a world without hosts and deployment targets.
func newEmptyWorld(t *testing.T, seed uint64) *simWorld {
	t.Helper()
	w := &simWorld{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		rings: map[string]int{}, hosts: map[string]*rollout.FleetHost{}, clusters: map[string]*simCluster{},
		wanted: folder.Trees{}, bad: map[string]bool{}, repo: folder.Trees{}, records: map[folder.Key]rollout.Record{},
		requires: map[string]string{}, oracle: map[string]*targetOracle{},
	}
	w.settings = rollout.Settings{RollBack: w.chance(2), SkipUnknown: w.chance(3)}
	if w.chance(2) {
		w.settings.ProgressDeadline = 3 * time.Hour
	}
	w.settings.FailedFor = []time.Duration{0, 5 * time.Minute, 15 * time.Minute}[w.random.IntN(3)]
	w.percent = w.chance(5)
	number := 1 + w.random.IntN(3)
	if !w.percent && w.chance(12) {
		number = 0
	}
	for i := range number {
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
	return w
}

// ring returns a stage that selects hosts by a label.
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

// closedWindows returns windows that never open during the simulation.
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

// chance is true once in n calls.
func (w *simWorld) chance(n int) bool { return w.random.IntN(n) == 0 }

func (w *simWorld) addHost() {
	host := fmt.Sprintf("h%d", len(w.rings))
	w.rings[host] = w.random.IntN(len(w.settings.Stages) + 1)
	info := &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": fmt.Sprint(w.rings[host])}}
	names := make([]string, w.random.IntN(3))
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", host, i)
	}
	if w.values != nil {
		info.IsCluster, info.Labels, names = true, info.TypeLabels, []string{host}
	}
	for _, name := range names {
		info.Clusters = append(info.Clusters, name)
		w.clusters[name] = &simCluster{
			host: host, tree: map[folder.Key]string{}, verdict: map[folder.Key]verdict.Verdict{}, since: map[folder.Key]time.Time{},
		}
	}
	w.hosts[host], w.wanted[host] = info, map[string]string{}
	for _, target := range w.targets {
		if version := w.oracle[target].version; version != "" && (w.values != nil || !w.chance(4)) {
			w.wanted[host][target] = w.content(host, version)
		}
	}
}

func (w *simWorld) removeHost() {
	if len(w.hosts) < 3 {
		return
	}
	host := slices.Sorted(maps.Keys(w.hosts))[w.random.IntN(len(w.hosts))]
	delete(w.hosts, host)
	delete(w.wanted, host)
	maps.DeleteFunc(w.clusters, func(_ string, c *simCluster) bool { return c.host == host })
}

// wantNewContent changes the wanted content of all or some hosts. The content may be bad.
func (w *simWorld) wantNewContent(target string, mayBeBad bool) {
	w.Contents++
	version := fmt.Sprintf("-%s-%d", target, w.Contents)
	bad := mayBeBad && w.chance(3)
	w.oracle[target].version = version
	all := w.chance(2) || w.quiet || w.isUniform()
	for _, host := range slices.Sorted(maps.Keys(w.hosts)) {
		_, has := w.wanted[host][target]
		switch {
		case has && w.values == nil && w.chance(12):
			delete(w.wanted[host], target)
		case has && (all || w.chance(2)) || !has && w.chance(2):
			content := w.content(host, version)
			w.wanted[host][target] = content
			w.bad[content] = bad && (w.isUniform() || !w.chance(3))
		}
	}
}

// run simulates weeks, then makes all clusters healthy and expects the rollout to finish.
func (w *simWorld) run() {
	for range 12 + w.random.IntN(12) {
		w.playEvents()
		w.step()
		if w.t.Failed() {
			return
		}
	}
	w.quiet = true
	w.holds, w.bad = nil, map[string]bool{}
	for _, target := range w.targets {
		w.wantNewContent(target, false)
	}
	// The guide promises a run for each stage and for each batch of a stage, and one for the last proof. A target waits for its
	// required target. Removals pass all stages once more.
	runs := 4
	for _, stage := range append(w.settings.Stages, w.settings.Stages...) {
		runs++
		if stage.MaxConcurrent > 0 {
			runs += len(w.hosts) / stage.MaxConcurrent
		}
	}
	runs *= len(w.targets)
	for run, lost := 0, w.Lost; run < runs; run++ {
		w.step()
		if w.values != nil && w.Lost > lost { // the times of assignment are lost too, so the values soak again
			run, lost = run-1, w.Lost
		}
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

func (w *simWorld) playEvents() {
	if w.chance(4) {
		w.wantNewContent(w.targets[w.random.IntN(len(w.targets))], true)
	}
	if w.chance(10) {
		w.addHost()
	}
	if w.chance(14) {
		w.removeHost()
	}
	if w.chance(12) && len(w.hosts) > 0 {
		w.holds = []rollout.FolderHold{{DeploymentTargets: []string{w.targets[0]}, Hosts: []string{slices.Sorted(maps.Keys(w.hosts))[0]}}}
	} else if w.chance(3) {
		w.holds = nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		if w.chance(15) {
			w.clusters[name].silent = !w.clusters[name].silent
		}
	}
}

// passTime advances the clock by about an hour and changes the status of clusters.
func (w *simWorld) passTime() {
	w.now = w.now.Add(time.Duration(20+w.random.IntN(80)) * time.Minute)
	if w.quiet {
		w.now = w.now.Add(2 * time.Hour)
	}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		c := w.clusters[name]
		c.silent = c.silent && !w.quiet
		if !w.quiet && w.chance(6) {
			continue // a slow cluster
		}
		for _, target := range w.targets {
			key := folder.Key{Host: c.host, DeploymentTarget: target}
			tree := w.repo[c.host][target]
			become := verdict.Ready
			switch {
			case w.bad[tree]:
				become = verdict.Failed
			case !w.quiet && w.chance(8):
				become = verdict.Progressing
			case !w.quiet && w.chance(25):
				become = verdict.Failed
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

func (w *simWorld) report(cluster string, key folder.Key) rollout.Report {
	c := w.clusters[cluster]
	if c == nil || c.silent || c.verdict[key] == "" || w.values != nil && c.tree[key] == "" {
		return rollout.Report{Status: verdict.Status{Verdict: verdict.Unknown}}
	}
	return rollout.Report{Known: true, Tree: c.tree[key], Status: verdict.Status{Verdict: c.verdict[key], Since: c.since[key]}}
}
