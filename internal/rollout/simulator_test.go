package rollout_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// fleets is the number of simulated fleets.
var fleets = acceptancetest.Count(60, 10_000)

// TestSimulatedRollouts compares each step of rollouts in random fleets with a simple oracle. Clusters become ready late, fail,
// flap, fall silent, join and leave while new content arrives at random.
func TestSimulatedRollouts(t *testing.T) {
	t.Parallel()
	simulate(t, newFolderWorld, 1956, 3152, 8820)
}

// simulate runs fleets with the first seeds and with regressions, seeds that found defects earlier.
func simulate(t *testing.T, newFolderWorld func(*testing.T, uint64) *simWorld, regressions ...uint64) {
	t.Helper()
	var total tally
	seeds := regressions
	for seed := range uint64(fleets) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		w := newFolderWorld(t, seed)
		w.run()
		if t.Failed() {
			t.Fatalf("fleet %d, after %d steps", seed, w.steps)
		}
		total.add(w.tally)
	}
	t.Logf("%d fleets: %+v", fleets, total)
	if total.Timed == 0 || total.Written == 0 || total.RolledBack == 0 || total.Halted == 0 || total.Lost == 0 || total.Finished < fleets {
		t.Errorf("some kinds of events never happened: %+v", total)
	}
}

type tally struct{ Steps, Written, RolledBack, Halted, Lost, Finished, Contents, Removed, Timed int }

func (a *tally) add(b tally) {
	sum, more := reflect.ValueOf(a).Elem(), reflect.ValueOf(b)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}

func (w *simWorld) input() rollout.StepInput {
	in := rollout.StepInput{
		Now: w.now, Wanted: w.wanted, Deployed: w.repo, Hosts: w.hosts, Settings: &w.settings, Holds: w.holds,
		Reports: w.report, Records: w.records, State: w.state, Lost: w.lost, Tip: fmt.Sprint(len(w.commits) - 1), Back: map[string]folder.Trees{},
	}
	if len(w.requires) > 0 {
		in.Requires = func(key folder.Key) []folder.Key {
			required, ok := w.requires[key.DeploymentTarget]
			if _, there := w.wanted[key.Host][required]; !ok || !there {
				return nil
			}
			return []folder.Key{{Host: key.Host, DeploymentTarget: required}}
		}
	}
	return in
}

// advance decides a step, and supplies the commits for rollbacks.
func (w *simWorld) advance(in rollout.StepInput) *rollout.Outcome {
	if w.values != nil {
		return w.advanceValues(in)
	}
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
	checkRoundTrip(w.t, out.Progress)
	return out
}

// step simulates one run.
func (w *simWorld) step() {
	w.passTime()
	w.steps++
	w.Steps++
	w.settings.Approvals, w.settings.Windows = nil, nil
	if w.closed = !w.quiet && w.chance(12); w.closed {
		w.settings.Windows = closedWindows(w.t)
	}
	w.shut = map[int]bool{}
	for i := range w.settings.Stages {
		if w.settings.Stages[i].Windows = nil; !w.quiet && w.chance(4) {
			w.settings.Stages[i].Windows, w.shut[i] = closedWindows(w.t), true
		}
	}
	if w.before != nil && (w.quiet || w.chance(2)) {
		for _, p := range w.before.Progress {
			if p.Content != "" {
				w.settings.Approvals = append(w.settings.Approvals, gate.Mark(p.DeploymentTarget, p.Content))
			}
			if w.quiet && p.Retry != "" { // the final content may have failed before
				w.settings.Approvals = append(w.settings.Approvals, p.Retry)
			}
		}
	}
	if w.lost = w.chance(20) && w.repo.Count() > 0; w.lost {
		w.state = nil
		w.Lost++
	}
	if w.values != nil {
		w.placeValues()
	}
	in := w.input()
	out := w.advance(in)
	if w.chance(8) {
		if again := w.advance(in); !reflect.DeepEqual(out, again) {
			w.t.Errorf("the same input gives two decisions:\n%+v\nand\n%+v", out, again)
		}
		w.checkIndependence(in, out)
	}
	w.checkStep(out)
	w.apply(out)
	w.before = out
	if w.values != nil {
		w.noteReleased(out)
		w.values.saveMemory()
	}
	if w.quiet || w.chance(4) { // a second run without events decides nothing
		w.state, w.lost = out.State, false
		again := w.advance(w.input())
		if !w.mayBeProvenAtOnce() && (w.changesAnything(again) || !reflect.DeepEqual(again.RollingOut(), out.RollingOut())) {
			w.t.Errorf("without an event, %v became %v", out.RollingOut(), again.RollingOut())
		}
		if len(w.requires) == 0 { // a required target may be proven in between
			w.checkTimes(again)
		}
	}
	if w.state = out.State; w.chance(8) {
		w.state = w.roundTripState(out.State)
	}
}

// checkTimes expects progress with a time NotBefore to continue at that time and no earlier, if the reports do not change.
func (w *simWorld) checkTimes(out *rollout.Outcome) {
	for _, p := range out.Progress {
		isTimed := p.WaitsFor == rollout.WaitsForClusters || p.WaitsFor == rollout.WaitsForSoak
		if p.NotBefore.IsZero() {
			continue
		}
		if !p.NotBefore.After(w.now) || !isTimed && p.WaitsFor != rollout.WaitsForWindow {
			w.t.Errorf("at %s %q waits for %s until %s", w.now, p.DeploymentTarget, p.WaitsFor, p.NotBefore)
		}
		if !isTimed || p.NotBefore.Sub(w.now) > 2*time.Hour { // other clusters may fail or be skipped by then
			continue
		}
		moves := func(at time.Time) bool {
			in := w.input()
			in.Now = at
			later := w.advance(in)
			now, then := out.State.Targets[p.DeploymentTarget], later.State.Targets[p.DeploymentTarget]
			if then == nil || then.Passed > now.Passed {
				return true
			}
			after := later.Decisions.Trees(w.repo)
			return slices.ContainsFunc(slices.Collect(maps.Keys(w.hosts)), func(host string) bool {
				return after[host][p.DeploymentTarget] != w.repo[host][p.DeploymentTarget]
			})
		}
		w.Timed++
		if moves(p.NotBefore.Add(-time.Second)) {
			w.t.Errorf("%s continues before %s", p.DeploymentTarget, p.NotBefore)
		}
		if w.settings.FailedFor == 0 && !moves(p.NotBefore) { // with failed_for, a present failure may halt it by then
			w.t.Errorf("%s does not continue at %s", p.DeploymentTarget, p.NotBefore)
		}
	}
}

// roundTripState writes the state and reads it back, as the next process does.
func (w *simWorld) roundTripState(state *rollout.StepState) *rollout.StepState {
	text, err := json.Marshal(state)
	if err != nil {
		w.t.Fatal(err)
	}
	read := &rollout.StepState{}
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

// mayBeProvenAtOnce reports whether earlier reports may prove newly written content, since some hosts of a stage are enough.
func (w *simWorld) mayBeProvenAtOnce() bool {
	for _, stage := range w.settings.Stages {
		if stage.ReadyPercent < 100 || stage.MaxFailed > 0 {
			return true
		}
	}
	// New hosts may get the released content after another target was written there.
	return w.settings.SkipUnknown || len(w.requires) > 0 || w.percent && len(w.shut) > 0
}

func (w *simWorld) changesAnything(out *rollout.Outcome) bool {
	return !reflect.DeepEqual(out.Decisions.Trees(w.repo), w.repo)
}

// checkIndependence expects the same decision for a target without the other targets, if none requires another.
func (w *simWorld) checkIndependence(in rollout.StepInput, out *rollout.Outcome) {
	if len(w.requires) > 0 {
		return
	}
	name := w.targets[0]
	only := func(trees folder.Trees) folder.Trees {
		filtered := folder.Trees{}
		for host, targets := range trees {
			filtered[host] = map[string]string{}
			if tree, ok := targets[name]; ok {
				filtered[host][name] = tree
			}
		}
		return filtered
	}
	in.Wanted, in.Deployed = only(in.Wanted), only(in.Deployed)
	if in.State != nil {
		in.State = &rollout.StepState{Stages: in.State.Stages, Targets: map[string]*rollout.ChangeState{}}
		if target := w.state.Targets[name]; target != nil {
			in.State.Targets[name] = target
		}
	}
	alone := w.advance(in)
	for host, targets := range out.Decisions {
		if alone.Decisions[host][name] != targets[name] {
			w.t.Errorf("%s on %s: got %+v alone, and %+v with other targets", name, host, alone.Decisions[host][name], targets[name])
		}
	}
}

// apply commits the decisions a minute after the reports were read.
func (w *simWorld) apply(out *rollout.Outcome) {
	after := out.Decisions.Trees(w.repo)
	for host, targets := range after {
		for target, tree := range targets {
			if out.Decisions[host][target].Action == rollout.Keep && !w.repo.Has(host, target) {
				w.t.Errorf("%s/%s is kept, but does not exist", host, target)
			}
			_ = tree
		}
	}
	committed := w.now.Add(time.Minute)
	if w.values != nil {
		committed = w.now.Add(time.Second)
	}
	changed := false
	for _, key := range append(after.Keys(), w.repo.Keys()...) {
		now, is := after[key.Host][key.DeploymentTarget]
		then, was := w.repo[key.Host][key.DeploymentTarget]
		switch {
		case is && now != then:
			w.records[key] = rollout.Record{Tree: now, Before: then, Changed: committed}
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
