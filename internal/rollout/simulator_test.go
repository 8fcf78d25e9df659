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

// fleets is how many random fleets the simulator drives.
var fleets = acceptancetest.Count(60, 10_000)

// TestSimulatedRollouts drives rollouts of random fleets, whose clusters become ready late, fail, flap, fall
// silent, join and leave while new content arrives at random, and holds each step to a naive oracle.
func TestSimulatedRollouts(t *testing.T) {
	t.Parallel()
	simulate(t, newWorld, 1956, 3152, 8820)
}

// simulate plays fleets with the first seeds, and with others that have found mistakes before.
func simulate(t *testing.T, newWorld func(*testing.T, uint64) *world, others ...uint64) {
	t.Helper()
	var total tally
	seeds := others
	for seed := range uint64(fleets) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		w := newWorld(t, seed)
		w.live()
		if t.Failed() {
			t.Fatalf("fleet %d, after %d steps", seed, w.steps)
		}
		total.add(w.tally)
	}
	t.Logf("%d fleets: %+v", fleets, total)
	if total.Timed == 0 || total.Written == 0 || total.RolledBack == 0 || total.Halted == 0 || total.Lost == 0 || total.Finished < fleets {
		t.Errorf("not everything happened: %+v", total)
	}
}

type tally struct{ Steps, Written, RolledBack, Halted, Lost, Finished, Contents, Removed, Timed int }

func (a *tally) add(b tally) {
	sum, more := reflect.ValueOf(a).Elem(), reflect.ValueOf(b)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}

func (w *world) input() rollout.StepInput {
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

// advance asks for a decision, with the commits that it goes back to.
func (w *world) advance(in rollout.StepInput) *rollout.Outcome {
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

// step is one run.
func (w *world) step() {
	w.pass()
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
			if w.quiet && p.Retry != "" { // what is wanted in the end may be what failed before
				w.settings.Approvals = append(w.settings.Approvals, p.Retry)
			}
		}
	}
	if w.lost = w.chance(20) && w.repo.Count() > 0; w.lost {
		w.state = nil
		w.Lost++
	}
	if w.values != nil {
		w.place()
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
	if w.values != nil {
		w.noteReleased(out)
		w.values.keep()
	}
	if w.quiet || w.chance(4) { // nothing happens in between: then nothing is decided
		w.state, w.lost = out.State, false
		again := w.advance(w.input())
		if !w.mayBeProvenAtOnce() && (w.decides(again) || !reflect.DeepEqual(again.RollingOut(), out.RollingOut())) {
			w.t.Errorf("without anything new, %v became %v", out.RollingOut(), again.RollingOut())
		}
		if len(w.requires) == 0 { // which may be proven in between
			w.checkTimes(again)
		}
	}
	if w.state = out.State; w.chance(8) {
		w.state = w.remembered(out.State)
	}
}

// checkTimes expects what is said to go on not before a time to wait until then, and to go on then, as long as all clusters
// say what they say now.
func (w *world) checkTimes(out *rollout.Outcome) {
	for _, p := range out.Progress {
		isTimed := p.WaitsFor == rollout.WaitsForClusters || p.WaitsFor == rollout.WaitsForSoak
		if p.NotBefore.IsZero() {
			continue
		}
		if !p.NotBefore.After(w.now) || !isTimed && p.WaitsFor != rollout.WaitsForWindow {
			w.t.Errorf("at %s %q waits for %s until %s", w.now, p.DeploymentTarget, p.WaitsFor, p.NotBefore)
		}
		if !isTimed || p.NotBefore.Sub(w.now) > 2*time.Hour { // others may fail, or be given up, by then
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
			w.t.Errorf("%s goes on before %s", p.DeploymentTarget, p.NotBefore)
		}
		if w.settings.FailedFor == 0 && !moves(p.NotBefore) { // else what fails now may halt it then
			w.t.Errorf("%s does not go on at %s", p.DeploymentTarget, p.NotBefore)
		}
	}
}

// remembered is a state as the next process reads it.
func (w *world) remembered(state *rollout.StepState) *rollout.StepState {
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

// mayBeProvenAtOnce says whether what was just written may be proven by what was known already: some of a
// stage are enough.
func (w *world) mayBeProvenAtOnce() bool {
	for _, stage := range w.settings.Stages {
		if stage.ReadyPercent < 100 || stage.MaxFailed > 0 {
			return true
		}
	}
	// And new hosts may get what is released, once another target has made them known.
	return w.settings.SkipUnknown || len(w.requires) > 0 || w.percent && len(w.shut) > 0
}

func (w *world) decides(out *rollout.Outcome) bool {
	return !reflect.DeepEqual(out.Decisions.Trees(w.repo), w.repo)
}

// checkAlone expects a target that requires nothing, and that nothing requires, to go as if it were alone.
func (w *world) checkAlone(in rollout.StepInput, out *rollout.Outcome) {
	if len(w.requires) > 0 {
		return
	}
	name := w.targets[0]
	only := func(trees folder.Trees) folder.Trees {
		made := folder.Trees{}
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
		in.State = &rollout.StepState{Stages: in.State.Stages, Targets: map[string]*rollout.ChangeState{}}
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
	if w.values != nil {
		at = w.now.Add(time.Second)
	}
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
