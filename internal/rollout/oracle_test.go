package rollout_test

import (
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// naive is what the oracle knows of a deployment target. It never forgets, not where the state is lost, looks
// at everything in each step, and has no code in common with what it checks.
type naive struct {
	version  string
	idle     bool              // no change is under way
	hosts    map[string]string // what the change that is under way wants on the hosts that it reaches; "" is nothing
	carried  map[string]bool   // those of them that had it when the change began
	late     map[string]bool   // hosts that joined stages that were passed
	held     map[string]bool   // hosts that something held
	waits    bool              // after the step before, some host did not have what is wanted: it may have left the fleet since
	passed   map[int]bool
	wentBack bool
	proven   map[string]string          // by host, the tree that was proven there
	former   map[string]string          // by host, what it had before anything that is not proven; "" is nothing
	lost     map[string]map[string]bool // by host, what it had when the state was lost, and when newer content came after that
	joined   map[string]string          // by host, what it wanted when it joined
	failed   map[string]bool            // by host and tree, what went back
	gone     map[string]time.Time
}

func newNaive() *naive {
	o := &naive{gone: map[string]time.Time{}, proven: map[string]string{}, joined: map[string]string{}}
	o.begin()
	return o
}

// begin forgets all that is of one change.
func (o *naive) begin() {
	o.hosts, o.carried, o.late, o.passed = map[string]string{}, map[string]bool{}, map[string]bool{}, map[int]bool{}
	o.held = map[string]bool{}
	o.former, o.failed, o.wentBack = map[string]string{}, map[string]bool{}, false
}

// isProven says whether what a host has was proven there.
func (o *naive) isProven(host, tree string) bool {
	proven, ok := o.proven[host]
	return ok && proven == tree
}

func (w *world) isHeld(host, target string) bool {
	for _, hold := range w.holds {
		if slices.Contains(hold.Hosts, host) && slices.Contains(hold.DeploymentTargets, target) {
			return true
		}
	}
	return false
}

// checkStep holds a decision to what must be so, whatever it was made of.
func (w *world) checkStep(out *rollout.Outcome) {
	after := out.Decisions.Trees(w.repo)
	for _, target := range w.targets {
		o := w.oracle[target]
		w.checkTarget(target, o, after)
		if state := out.State.Targets[target]; state == nil || !state.Guessed {
			o.lost = nil // whoever the change reaches is known again
		}
	}
}

func (w *world) checkTarget(target string, o *naive, after folder.Trees) {
	w.follow(target, o)
	failing, lasting := w.passStages(target, o)
	writes, back := map[string]bool{}, map[string]bool{}
	for host := range w.hosts {
		was, is := w.repo[host][target], after[host][target]
		switch {
		case was == is:
		case is == w.wanted[host][target]:
			writes[host] = true
		default:
			back[host] = true
		}
	}
	w.checkBack(target, o, after, back, lasting)
	if failing && len(writes) > 0 && o.lost == nil && !w.isReleased(target, o) {
		w.t.Errorf("%s is written on %v though clusters that have it failed", target, slices.Sorted(maps.Keys(writes)))
	}
	if w.percent {
		w.checkShare(target, o, writes)
	} else {
		w.checkStages(target, o, writes)
	}
	if w.isReleased(target, o) {
		for host := range writes { // new hosts, which get what all others have
			o.proven[host] = w.wanted[host][target]
		}
	}
	for host := range writes {
		w.checkWrite(target, o, host)
	}
	o.waits = false
	for host := range after {
		o.waits = o.waits || w.hosts[host] == nil && after.Has(host, target)
	}
	for host, want := range o.hosts {
		o.waits = o.waits || after[host][target] != want
	}
}

func (w *world) checkWrite(target string, o *naive, host string) {
	want := w.wanted[host][target]
	if w.isHeld(host, target) {
		w.t.Errorf("%s/%s is written while it is held", host, target)
	}
	shut := w.shut[w.rings[host]]
	if w.percent { // it may be of the share, and the share alone selects the first ring
		shut = shut && w.shut[0] && w.rings[host] > 0
	}
	if w.closed || shut {
		w.t.Errorf("%s/%s is written while windows are closed", host, target)
	}
	if o.failed[host+want] && want != "" && !w.isRetried(target) {
		w.t.Errorf("%s/%s: %q failed, and is tried again unasked", host, target, want)
	}
	if required := w.requires[target]; required != "" && want != "" {
		if now := w.wanted[host][required]; now != "" && now != w.repo[host][required] && !w.isHeld(host, required) {
			w.t.Errorf("%s/%s is written before %s, which it requires", host, target, required)
		}
	}
	if want == "" {
		w.checkRemoval(target, o, host)
		o.gone[host] = w.now
	}
}

// checkRemoval expects all that the change writes elsewhere to be there before something is removed: nobody waits for what
// was held, or has joined.
func (w *world) checkRemoval(target string, o *naive, host string) {
	if len(w.settings.Stages) == 0 {
		return
	}
	for other, want := range o.hosts {
		if want != "" && w.repo[other][target] != want && !o.held[other] && o.joined[other] != want {
			w.t.Errorf("%s/%s is removed before %s has what is wanted there", host, target, other)
		}
	}
}

// checkBack expects what failed to go back on all hosts that have it, at once, to exactly what they had before:
// nowhere else, and for no other reason. Only where the state was lost may nobody know what that was.
func (w *world) checkBack(target string, o *naive, after folder.Trees, back map[string]bool, failing bool) {
	if len(back) == 0 && (!failing || !w.settings.RollBack || o.lost != nil || w.percent) {
		return
	}
	if !w.settings.RollBack || !failing && !o.wentBack && !w.percent && o.lost == nil {
		w.t.Errorf("%s goes back on %v by itself, where nothing failed or it may not", target, slices.Sorted(maps.Keys(back)))
	}
	for host, want := range o.hosts {
		is := after[host][target]
		switch {
		case w.isHeld(host, target):
			if back[host] {
				w.t.Errorf("%s/%s goes back while it is held", host, target)
			}
		case w.percent: // who is proven is not known: the share is whatever was written
			if back[host] && !w.hadBefore(host, target, is) {
				w.t.Errorf("%s/%s goes back to %q, which it never had", host, target, is)
			}
		case w.repo[host][target] != want: // it does not have what failed
			if back[host] {
				w.t.Errorf("%s/%s goes back, and does not have what failed", host, target)
			}
		case is != o.former[host] && !o.lost[host][is] && (w.isKnown(target, o, host) || is != ""):
			w.t.Errorf("%s/%s has %q after what failed went back, and had %q before", host, target, is, o.former[host])
		}
		o.failed[host+want] = true
		delete(o.proven, host)
	}
	for host := range back {
		if _, reached := o.hosts[host]; !reached && o.lost == nil {
			w.t.Errorf("%s/%s goes back, and is not part of what failed", host, target)
		}
	}
	o.wentBack, o.passed, o.late = true, map[int]bool{}, map[string]bool{}
}

// hadBefore says whether a host had a tree before, or nothing.
func (w *world) hadBefore(host, target, tree string) bool {
	return slices.ContainsFunc(w.commits, func(commit folder.Trees) bool { return commit[host][target] == tree })
}

func (w *world) isRetried(target string) bool { // approvals that name an attempt
	for _, approval := range w.settings.Approvals {
		if name, content, _ := cut(approval); name == target && len(content) > 10 {
			return true
		}
	}
	return false
}

// follow notes what changes by itself: what is wanted, and who is there.
func (w *world) follow(target string, o *naive) {
	for _, of := range []map[string]string{o.hosts, o.former, o.proven} {
		maps.DeleteFunc(of, func(host, _ string) bool { return w.hosts[host] == nil })
	}
	if o.idle = w.isThrough(target, o); o.idle {
		o.begin()
	}
	if w.lost {
		w.lose(target, o)
	}
	if w.isAnother(target, o) {
		w.renew(target, o)
	}
	for host := range w.hosts {
		if !w.isOfOwner(host) && w.wanted[host][target] != "" {
			o.joined[host] = w.wanted[host][target]
		}
	}
	if w.isReleased(target, o) { // no change is under way, then
		return
	}
	for host := range w.hosts {
		o.held[host] = o.held[host] || w.isHeld(host, target)
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		if _, reached := o.hosts[host]; !reached && want != have {
			o.hosts[host] = want
			if _, known := o.former[host]; !known {
				o.former[host] = have
			}
		}
	}
}

// lose notes what the repository does not tell when the state is lost.
func (w *world) lose(target string, o *naive) {
	// Of what was removed it says nothing any more.
	maps.DeleteFunc(o.hosts, func(host, want string) bool { return want == "" && !w.repo.Has(host, target) })
	if !w.isRecorded(target) { // nor that folders were added, and failed
		o.failed, o.wentBack = map[string]bool{}, false
	}
	o.lost = map[string]map[string]bool{}
	w.noteLost(target, o)
	for host := range w.hosts { // all that have what is wanted prove it, then
		if want := w.wanted[host][target]; w.values != nil && w.repo[host][target] == want {
			o.hosts[host] = want
		}
	}
}

func (w *world) noteLost(target string, o *naive) {
	for host := range w.hosts {
		if o.lost[host] == nil { // it has joined since: then it may have had nothing
			o.lost[host] = map[string]bool{"": !w.lost}
		}
		o.lost[host][w.repo[host][target]] = true
		if w.values != nil {
			o.lost[host][w.values.released] = true // as its owner says
		}
	}
}

// isAnother says whether something else is wanted than before.
func (w *world) isAnother(target string, o *naive) bool {
	joins, some := false, false
	for host, want := range o.hosts {
		if want != w.wanted[host][target] {
			return true
		}
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		_, reached := o.hosts[host]
		known := w.isKnown(target, o, host)
		if !reached && want != have && known {
			return true
		}
		joins = joins || want != "" && !reached && !known
		some = some || want != "" && (reached || have == want)
	}
	return joins && !some && !o.idle // what nobody has is not released
}

// renew begins with what is wanted now. What was written and is not proven is part of it.
func (w *world) renew(target string, o *naive) {
	before, former := o.hosts, o.former
	o.begin()
	for host, want := range before {
		now, have := w.wanted[host][target], w.repo[host][target]
		if o.isProven(host, have) {
			continue
		}
		o.former[host] = former[host]
		if have == now && (now == want || now != "") {
			o.hosts[host], o.carried[host] = now, true
		}
	}
	if o.lost != nil {
		w.noteLost(target, o)
	}
}

// isRecorded says whether the repository tells that what is wanted was there and went back.
func (w *world) isRecorded(target string) bool {
	for host := range w.hosts {
		record, ok := w.records[folder.Key{Host: host, DeploymentTarget: target}]
		if want := w.wanted[host][target]; ok && want != "" && record.Tree != want && record.Before == want {
			return true
		}
	}
	return false
}

// isThrough says whether a change was at its end after the step before.
func (w *world) isThrough(target string, o *naive) bool {
	if o.waits && len(o.hosts) > 0 && !w.lost {
		return false
	}
	for stage := range w.turns() {
		if !o.passed[stage] && len(o.hosts) > 0 {
			return false
		}
	}
	for host, want := range o.hosts {
		if w.repo[host][target] != want {
			return false
		}
	}
	return true
}

// isKnown says whether a host is no new one: neither since the step before, nor, with what it wants now, since the
// state was lost, where a change is thought to be under way that it joined.
func (w *world) isKnown(target string, o *naive, host string) bool {
	want, joined := o.joined[host]
	return w.isOfOwner(host) && (o.lost == nil || !joined || want != w.wanted[host][target])
}

// isReleased says whether everybody but hosts that are new has what is wanted.
func (w *world) isReleased(target string, o *naive) bool {
	some := false
	if !o.idle {
		return false
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		known := w.isKnown(target, o, host)
		if want != have && (known || w.isHeld(host, target)) {
			return false
		}
		some = some || want == have && want != ""
	}
	return some
}
