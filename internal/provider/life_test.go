package provider_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// life simulates months with one assignment by random changes. Clusters follow the branch at random and report. The guarantees are
// checked after each apply.
type life struct {
	t         *testing.T
	random    *rand.Rand
	world     world
	runner    providertest.Runner
	clock     *stoppedClock // nil for the machine's clock
	onFailure string

	wanted  lifeConfig
	agents  map[string]*simulatedAgent
	foreign map[string]string
	// hasStaleReports is set after an edit by hand or a rename. Reports are read before the apply, and by the assignment's name, so the
	// rollout may need one more apply.
	hasStaleReports bool
	counter         int // of versions, values and notes
	history         []string
	tally           *lifeTally
}

type lifeConfig struct {
	name      string
	urlStyle  int // a spelling of the URL
	versions  map[string]string
	value     string
	hosts     []string
	hold      map[string]any
	adopt     bool
	allAtOnce bool // without a rollout
}

// simulatedAgent follows a branch on one cluster.
type simulatedAgent struct {
	commit string
	ready  bool
	since  time.Time
}

// lifeTally has the counts of all lives.
type lifeTally struct{ steps, commits, neverReady, repaired atomic.Int64 }

const (
	lifePath   = "all"
	neverReady = "-never-ready" // a suffix of versions and values that never get ready
	canary     = "canary-1"
)

var lifeHosts = []string{canary, "region-1", "region-2", "rest-1", "rest-2"}

func newLife(
	t *testing.T,
	seed uint64,
	onFailure string,
	world world,
	runner providertest.Runner,
	clock *stoppedClock,
	tally *lifeTally,
) *life {
	l := &life{
		t: t, random: rand.New(rand.NewPCG(seed, 19)), world: world, runner: runner, clock: clock, onFailure: onFailure, tally: tally,
		agents: map[string]*simulatedAgent{}, foreign: map[string]string{},
		wanted: lifeConfig{name: names[0], hosts: slices.Clone(lifeHosts), versions: map[string]string{"w0": "v0", "w1": "v0"}, value: "v0"},
	}
	l.record("seed %d, on_failure = %q", seed, onFailure)
	l.writeForeignFile("README.md")
	return l
}

func (l *life) record(format string, arguments ...any) {
	l.history = append(l.history, fmt.Sprintf(format, arguments...))
}

// playSteps makes and applies random changes, and then calls finish.
func (l *life) playSteps(steps int) {
	defer func() {
		if l.t.Failed() {
			l.t.Logf("after:\n%s", strings.Join(l.history, "\n"))
		}
	}()
	l.apply()
	for step := range steps {
		l.record("step %d", step+1)
		l.makeRandomChanges()
		l.syncClusters(0.6)
		l.advanceClock(time.Hour)
		l.apply()
		l.tally.steps.Add(1)
		if l.t.Failed() {
			return
		}
	}
	l.finish()
}

func (l *life) now() time.Time {
	if l.clock == nil {
		return time.Now().UTC()
	}
	return l.clock.now
}

func (l *life) advanceClock(d time.Duration) {
	if l.clock != nil {
		l.clock.now = l.clock.now.Add(d)
	}
}

func (l *life) makeRandomChanges() {
	w := &l.wanted
	workloads, former := slices.Sorted(maps.Keys(w.versions)), w.name
	for _, choice := range []struct {
		weight int
		do     func()
	}{
		{20, func() { w.versions[pick(l.random, workloads)] = l.newVersion(3) }},
		{8, func() { w.value = l.newVersion(5) }},
		{6, func() { w.versions[fmt.Sprint("w", l.random.IntN(5))] = l.newVersion(4) }},
		{4, func() {
			if len(workloads) > 1 {
				delete(w.versions, pick(l.random, workloads))
			}
		}},
		{6, func() { l.toggleHost(pick(l.random, lifeHosts[1:])) }},
		{6, func() { w.name = pickOther(l.random, names, former) }},
		{5, func() { w.urlStyle = l.random.IntN(4) }},
		{5, func() { l.runner.Lose(assignment); w.adopt, w.name = true, former }}, // without a state, nothing links two names
		{8, l.editByHand},
		{4, func() {
			l.writeForeignFile(pick(l.random, []string{"NOTES.md", lifePath + "/" + canary + "/notes.txt", "other/x.yaml"}))
		}},
		{6, func() {
			w.hold = nil
			if l.random.IntN(2) == 0 {
				w.hold = map[string]any{"reason": "an audit", "hosts": []any{pick(l.random, w.hosts)}}
			}
		}},
		{22, func() {}},
	} {
		if n := l.random.IntN(100); n < choice.weight {
			choice.do()
		}
	}
	l.hasStaleReports = l.hasStaleReports || w.name != former
	l.record("    %+v", *w)
}

// newVersion returns a new version. One of oneIn versions never gets ready.
func (l *life) newVersion(oneIn int) string {
	l.counter++
	if l.random.IntN(oneIn) == 0 {
		l.tally.neverReady.Add(1)
		return fmt.Sprint("v", l.counter, neverReady)
	}
	return fmt.Sprint("v", l.counter)
}

func (l *life) configuration() providertest.Configuration {
	w := l.wanted
	var types, clusters, workloads []any
	for _, host := range w.hosts {
		ring, _, _ := strings.Cut(host, "-")
		types = append(types, map[string]any{"name": host, "labels": map[string]any{"ring": ring}})
		clusters = append(clusters, map[string]any{"name": host + "-a", "cluster_type": host})
	}
	for _, name := range slices.Sorted(maps.Keys(w.versions)) {
		workloads = append(
			workloads,
			map[string]any{"name": name, "workspace": "team", "deployment_targets": map[string]any{"live": map[string]any{
				"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/" + name, "tag": w.versions[name]},
			}}},
		)
	}
	fleet := providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment": "dev", "cluster_types": types, "clusters": clusters, "workloads": workloads,
		"workspaces":        []any{map[string]any{"name": "team"}},
		"target_policies":   []any{policy("all", map[string]any{}, map[string]any{})},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"SETTING": w.value}}},
	}}}
	location := map[string]any{"url": l.world.spell(gitops, w.urlStyle), "branch": "dev", "path": lifePath}
	attributes := map[string]any{
		"name": w.name, "fleet": fleet, "gitops_repo": location,
		"protection": map[string]any{"max_removed": 1000, "allow_empty": true, "emptied_hosts": anyList(w.hosts)},
	}
	if !w.allAtOnce {
		rollout := map[string]any{"stages": []any{ringStage("canary"), ringStage("region")}, "on_failure": l.onFailure}
		if l.clock != nil { // by the machine's clock, the deadline could pass between an apply and the next plan
			rollout["progress_deadline"] = "3h"
		}
		attributes["rollout"] = rollout
		attributes["evidence"] = providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: map[string]any{
			"name": w.name, "fleet": fleet, "gitops_repo": location, "feedback": map[string]any{"reports": l.reports()},
		}}
	}
	if w.hold != nil {
		attributes["holds"] = []any{w.hold}
	}
	if w.adopt {
		attributes["adopt"] = true
	}
	return providertest.Configuration{Resources: map[string]providertest.Resource{assignment: {Attributes: attributes}}}
}

func ringStage(name string) map[string]any {
	return map[string]any{"name": name, "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": name}}}
}

func anyList(texts []string) []any {
	list := []any{}
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

func (l *life) reports() []any {
	list := []any{}
	for _, host := range l.wanted.hosts {
		if agent := l.agents[host+"-a"]; agent != nil {
			list = append(
				list,
				map[string]any{"cluster": host + "-a", "commit": agent.commit, "ready": agent.ready, "since": agent.since.Format(time.RFC3339)},
			)
		}
	}
	return list
}

// apply applies, checks the branch, and expects an empty plan and no drift.
func (l *life) apply() *providertest.Plan {
	l.t.Helper()
	commits := l.world.commits(gitops, "dev")
	plan, diags := l.runner.Apply(l.t.Context(), l.configuration())
	if plan != nil && plan.Change(assignment) != nil {
		l.record("    the plan: %v", plan.Change(assignment).After["changes"])
	}
	if diags.Err() != nil {
		l.t.Errorf("the apply fails: %s", diags)
		return nil
	}
	added := l.world.commits(gitops, "dev") - commits
	if l.tally.commits.Add(int64(added)); added > 1 {
		l.t.Errorf("one apply makes %d commits, want at most one", added)
	}
	l.checkBranch()
	next, diags := l.runner.Plan(l.t.Context(), l.configuration())
	switch {
	case diags.Err() != nil:
		l.t.Errorf("the plan after an apply fails: %s", diags)
	case next.ExitCode != 0 && l.hasStaleReports:
		l.hasStaleReports = false
		return l.apply()
	case next.ExitCode != 0:
		l.t.Errorf("the plan after an apply is not empty: %s", describeChanges(next))
	}
	l.hasStaleReports = false
	drift, diags := l.runner.Plan(l.t.Context(), l.configuration(), providertest.RefreshOnly())
	if diags.Err() != nil || len(drift.Drifted) > 0 || l.clock != nil && drift.ExitCode != 0 {
		l.t.Errorf("a refresh after an apply finds %q: %v", drift.Drifted, diags)
	}
	if l.wanted.adopt {
		l.wanted.adopt = false
		return l.apply()
	}
	return plan
}

// checkBranch expects unchanged foreign files, and content that never gets ready only on the canary.
func (l *life) checkBranch() {
	l.t.Helper()
	files := l.branchFiles()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.Contains(files[name], neverReady) && strings.Contains(name, "-live/") && !strings.HasPrefix(name, lifePath+"/"+canary+"/") {
			l.t.Errorf("%s has content that the canary has not proven", name)
		}
	}
	for name, content := range l.foreign {
		if files[name] != content {
			l.t.Errorf("foreign file %s: got %q, want %q", name, files[name], content)
		}
	}
}

// finish sets good versions, lifts the hold, lets all clusters follow, expects all folders as configured, and destroys.
func (l *life) finish() {
	l.record("the end")
	l.counter++
	w := &l.wanted
	w.value, w.hold, w.hosts = fmt.Sprint("v", l.counter), nil, slices.Clone(lifeHosts)
	for name := range w.versions {
		w.versions[name] = fmt.Sprint("v", l.counter)
	}
	const rounds = 8
	for range rounds {
		l.apply()
		l.syncClusters(1)
		l.advanceClock(time.Hour)
	}
	if l.t.Failed() {
		return
	}
	if got, want := l.folders(), l.expectedFolders(); !maps.Equal(got, want) {
		l.t.Errorf("the folders differ from the configuration:\n%s", describeDifferences(got, want))
	}
	if rolledOut := l.runner.Now().Values(assignment)["rolled_out"]; rolledOut != true {
		l.t.Errorf("got rolled_out %v, want true", rolledOut)
	}
	if _, diags := l.runner.Apply(l.t.Context(), l.configuration(), providertest.Destroy()); diags.Err() != nil || len(l.runner.Now()) > 0 ||
		len(l.folders()) > 0 {
		l.t.Errorf("the destroy fails or leaves folders or state: %s", diags)
	}
	l.checkBranch()
	l.world.check()
}

// folders returns the assignment's files without the owner label, which a rename does not change.
func (l *life) folders() map[string]string {
	folders := map[string]string{}
	for name, content := range l.branchFiles() {
		if strings.Contains(name, "-live/") {
			folders[name] = ownerLabel.ReplaceAllString(content, "")
		}
	}
	return folders
}

var ownerLabel = regexp.MustCompile(`flotilla.dev/owner: .*`)

// expectedFolders returns the folders that a single apply writes in a new world.
func (l *life) expectedFolders() map[string]string {
	world := newMemoryWorld(l.t, false)
	other := &life{t: l.t, world: world, runner: providertest.New(world.start), clock: l.clock, wanted: l.wanted, tally: &lifeTally{}}
	other.wanted.allAtOnce = true
	other.apply()
	return other.folders()
}

func describeDifferences(got, want map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if content, ok := want[name]; !ok || content != got[name] {
			all = append(all, fmt.Sprintf("%s: got\n%s\nwant\n%s", name, got[name], content))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[name]; !ok {
			all = append(all, name+" is missing")
		}
	}
	return strings.Join(all, "\n")
}

// Versions that never get ready stay on the canary. Foreign files stay unchanged. An apply makes at most one commit and leaves an empty
// plan. In the end, all folders are as configured.
func TestReliabilityOfALifeFromOutside(t *testing.T) {
	t.Parallel()
	steps, seeds := reliabilitytest.Count(acceptancetest.Count(5, 60), 60), reliabilitytest.Count(1, 20)
	tally := &lifeTally{}
	t.Run("lives", func(t *testing.T) {
		for _, onFailure := range []string{"halt", "roll_back"} {
			for seed := range uint64(seeds) {
				t.Run(fmt.Sprint(onFailure, "-", seed), func(t *testing.T) {
					if onFailure != "halt" {
						acceptancetest.Only(t)
					}
					t.Parallel()
					world, clock := newMemoryWorld(t, seed%2 == 0), &stoppedClock{now: time.Now().UTC().Truncate(time.Second)}
					newLife(t, seed, onFailure, world, providertest.New(world.startAt(clock)), clock, tally).playSteps(steps)
				})
			}
		}
	})
	reliabilitytest.Report(
		t,
		"58-life",
		"a life of 60 applies, with versions that never get ready, renames, lost states, edits by hand, holds, and clusters that follow when they like",
		"in memory, through the provider",
		fmt.Sprint(2*seeds),
		fmt.Sprintf(
			"%d steps and %d commits; %d versions and values that never got ready were on the canary alone; %d files changed by hand, all mended; foreign "+
				"files byte-identical, the plan after each apply empty, and the end as wanted",
			tally.steps.Load(),
			tally.commits.Load(),
			tally.neverReady.Load(),
			tally.repaired.Load(),
		),
	)
}

// Each tool plays one value of on_failure; reported runs play both.
func TestALifeWithTerraform(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	folder, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	for name, tool := range tools(t) {
		for i, onFailure := range []string{"halt", "roll_back"} {
			if (name == "tofu") == (i == 0) && reliabilitytest.Count(0, 1) == 0 {
				continue
			}
			t.Run(name+"-"+onFailure, func(t *testing.T) {
				t.Parallel()
				runner := providertest.NewInstalled(t, tool, "flotilla/flotilla", "TF_CLI_CONFIG_FILE="+filepath.Join(folder, "cli.tfrc"))
				newLife(t, uint64(100+i), onFailure, newBareWorld(t), runner, nil, &lifeTally{}).playSteps(12)
			})
		}
	}
}
