package rollout_test

import (
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// naive is what the oracle knows of a deployment target. It never forgets, looks at everything in each step,
// and has no code in common with what it checks.
type naive struct {
	version string
	idle    bool              // no change is under way
	shrunk  bool              // a host that the change reached has left
	lost    bool              // the state was lost since the change began
	hosts   map[string]string // what the change that is under way wants on the hosts that it reaches; "" is nothing
	late    map[string]bool   // hosts that joined stages that were passed
	passed  map[int]bool
	proven  map[string]string // by host, the tree that was proven there
	failed  map[string]bool   // by host and tree, what went back
	gone    map[string]time.Time
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
		w.checkTarget(target, w.oracle[target], out, after)
	}
}

func (w *world) checkTarget(target string, o *naive, out *rollout.Outcome, after rollout.Trees) {
	w.follow(target, o)
	hosts := slices.Sorted(maps.Keys(w.hosts))
	writes, back := map[string]bool{}, false
	for _, host := range hosts {
		was, is := w.repo[host][target], after[host][target]
		if was == is {
			continue
		}
		if is == w.wanted[host][target] {
			writes[host] = true
		} else {
			back = true
			if !w.hadBefore(host, target, is) {
				w.t.Errorf("%s/%s goes back to %q, which it never had", host, target, is)
			}
			if !w.settings.RollBack {
				w.t.Errorf("%s/%s goes back by itself", host, target)
			}
			o.failed[host+w.wanted[host][target]] = true
		}
	}
	if back && w.Lost == 0 && !w.percent {
		for _, host := range hosts { // all at once, but for what is held
			if want, reached := o.hosts[host]; reached && want != "" && after[host][target] == want && !w.hadAll(o, host, target) && !w.isHeld(host, target) {
				w.t.Errorf("%s/%s stays with what failed", host, target)
			}
		}
	}
	for host := range o.hosts {
		if back {
			o.failed[host+w.wanted[host][target]] = true
			delete(o.proven, host)
		}
	}
	// What was written by an earlier change and proven since is no part of this one.
	if state := out.State.Targets[target]; state != nil {
		maps.DeleteFunc(o.hosts, func(host, want string) bool {
			return state.Hosts[host] == nil && w.repo[host][target] == want
		})
		for host := range state.Hosts {
			if want := w.wanted[host][target]; w.hosts[host] != nil && w.repo[host][target] == want {
				o.hosts[host] = want
			}
		}
	}
	switch {
	case o.lost || o.shrunk: // who was the proof is not there, or not known, any more
		if out.State.Targets[target] == nil {
			o.hosts, o.passed, o.late, o.lost = map[string]string{}, map[int]bool{}, map[string]bool{}, false
			o.shrunk = false
		}
	case w.percent:
		w.checkShare(target, o, writes)
	default:
		w.checkStages(target, o, writes)
	}
	if w.isReleased(target, o) {
		for host := range writes { // new hosts, which get what all others have
			o.proven[host] = w.wanted[host][target]
			delete(o.hosts, host)
		}
	}
	for host := range writes {
		want := w.wanted[host][target]
		if w.isHeld(host, target) {
			w.t.Errorf("%s/%s is written while it is held", host, target)
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
			o.gone[host] = w.now
		}
	}
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
	if o.late == nil {
		o.late, o.gone = map[string]bool{}, map[string]time.Time{}
	}
	maps.DeleteFunc(o.hosts, func(host, _ string) bool {
		o.shrunk = o.shrunk || w.hosts[host] == nil // what left may have been the proof
		return w.hosts[host] == nil
	})
	if o.idle = w.isThrough(target, o); o.idle {
		o.hosts, o.passed, o.late = map[string]string{}, map[int]bool{}, map[string]bool{}
	}
	if w.lost { // of what was removed, the repository says nothing any more
		maps.DeleteFunc(o.hosts, func(host, want string) bool { return want == "" && !w.repo.Has(host, target) })
	}
	if w.lost && !w.isRecorded(target) {
		o.failed = map[string]bool{} // of folders that were added, the repository does not know any more that they failed
	}
	o.lost = w.lost || o.lost && !o.idle
	another := false
	for host, want := range o.hosts {
		another = another || want != w.wanted[host][target]
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		_, known := w.repo[host]
		if _, reached := o.hosts[host]; !reached && want != have && known {
			another = true
		}
	}
	joins, some := false, false
	for host := range w.hosts {
		want := w.wanted[host][target]
		_, reached := o.hosts[host]
		_, known := w.repo[host]
		joins = joins || want != "" && !reached && !known
		some = some || want != "" && (reached || w.repo[host][target] == want)
	}
	if another || joins && !some && !o.idle { // what nobody has is not released
		before := o.hosts
		o.failed, o.lost, o.shrunk = map[string]bool{}, w.lost, false // something has changed
		o.hosts, o.passed, o.late = map[string]string{}, map[int]bool{}, map[string]bool{}
		for host, want := range before {
			// What it has written and not proven, and what it has proven, is part of the next.
			now, have := w.wanted[host][target], w.repo[host][target]
			if have == now && (now == want || now != "") {
				o.hosts[host] = now
			}
		}
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		if _, reached := o.hosts[host]; !reached && want != have {
			o.hosts[host] = want
		}
	}
}

// isRecorded says whether the repository tells that what is wanted was there and went back.
func (w *world) isRecorded(target string) bool {
	for host := range w.hosts {
		record, ok := w.records[rollout.Key{Host: host, DeploymentTarget: target}]
		if want := w.wanted[host][target]; ok && want != "" && record.Tree != want && record.Before == want {
			return true
		}
	}
	return false
}

// isThrough says whether a change was at its end after the step before.
func (w *world) isThrough(target string, o *naive) bool {
	for stage := range len(w.settings.Stages) + 1 {
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

// hadBefore says whether a host had a tree before, or nothing.
func (w *world) hadBefore(host, target, tree string) bool {
	for _, commit := range w.commits {
		if commit[host][target] == tree {
			return true
		}
	}
	return false
}

// hadAll says whether what a host has was proven there, or is older than the change.
func (w *world) hadAll(o *naive, host, target string) bool {
	tree, ok := o.proven[host]
	return ok && tree == w.repo[host][target]
}

// checkStages expects all stages before one that is written to be proven, and no more in flight than allowed.
func (w *world) checkStages(target string, o *naive, writes map[string]bool) {
	last := len(w.settings.Stages)
	for stage := range last + 1 {
		if !o.passed[stage] && w.isProven(target, o, stage) {
			o.passed[stage] = true
			for host, want := range o.hosts {
				if w.rings[host] == stage && w.repo[host][target] == want && !w.isHeld(host, target) {
					o.proven[host] = want
				}
			}
		}
		if !o.passed[stage] {
			w.checkConcurrent(target, o, stage, writes)
			for later := stage + 1; later <= last; later++ {
				for host := range writes {
					if w.rings[host] == later && !w.isReleased(target, o) {
						w.t.Errorf("%s/%s, of stage %d, is written while stage %d is not proven", host, target, later, stage)
					}
				}
			}
			return
		}
		for host := range writes {
			if w.rings[host] == stage {
				o.proven[host] = w.wanted[host][target] // it joins what is released
				o.late[host] = true
			}
		}
	}
}

// isReleased says whether everybody but hosts that are new has what is wanted.
func (w *world) isReleased(target string, o *naive) bool {
	some := false
	if !o.idle {
		return false
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		_, known := w.repo[host]
		if want != have && (known || w.isHeld(host, target)) {
			return false
		}
		some = some || want == have && want != ""
	}
	return some
}

// isProven says whether a stage needs nothing more.
func (w *world) isProven(target string, o *naive, number int) bool {
	stage := rollout.Stage{ReadyPercent: 100}
	if number < len(w.settings.Stages) {
		stage = w.settings.Stages[number]
	}
	hosts, held, ready, counted, failed := 0, 0, 0, 0, 0
	for host, want := range o.hosts {
		if w.rings[host] != number || o.late[host] {
			continue
		}
		if w.isHeld(host, target) {
			held++
			continue
		}
		hosts++
		if w.repo[host][target] != want {
			return false
		}
		r, c, f := w.ofHost(target, o, host, want, stage)
		ready, counted, failed = ready+r, counted+c, failed+f
	}
	if hosts == 0 {
		return held == 0
	}
	return failed <= stage.MaxFailed && ready > 0 && ready*100 >= (counted-failed)*stage.ReadyPercent
}

// ofHost counts the clusters of a host: those that are ready for long enough, those that count, those that
// failed.
func (w *world) ofHost(target string, o *naive, host, want string, stage rollout.Stage) (ready, counted, failed int) {
	clusters := w.hosts[host].Clusters
	if o.proven[host] == want {
		return max(1, len(clusters)), max(1, len(clusters)), 0
	}
	key := rollout.Key{Host: host, DeploymentTarget: target}
	changed := w.records[key].Changed
	if want == "" {
		changed = o.gone[host]
	}
	if len(clusters) == 0 {
		if !changed.Add(stage.Soak).After(w.now) {
			return 1, 1, 0
		}
		return 0, 1, 0
	}
	for _, name := range clusters {
		report := w.report(name, key)
		counted++
		since := report.Since
		if since.Before(changed) {
			since = changed
		}
		late := w.settings.ProgressDeadline > 0 && w.now.Sub(since) > w.settings.ProgressDeadline
		switch {
		case !report.Known && w.settings.SkipUnknown:
			counted--
		case !report.Known && late, report.Verdict == rollout.Failed && report.Tree == want,
			report.Verdict == rollout.Failed && !report.Since.Before(changed):
			failed++
		case !report.Known:
		case report.Tree == want && want == "" && !changed.Add(stage.Soak).After(w.now),
			report.Tree == want && report.Verdict == rollout.Ready && !since.Add(stage.Soak).After(w.now):
			ready++
		case late && (report.Tree != want || report.Verdict != rollout.Ready && want != ""):
			failed++
		}
	}
	return ready, counted, failed
}

// checkConcurrent expects a stage that is not passed to have no more hosts under way than it may, and none
// after more have failed than may.
func (w *world) checkConcurrent(target string, o *naive, number int, writes map[string]bool) {
	stage := rollout.Stage{ReadyPercent: 100}
	if number < len(w.settings.Stages) {
		stage = w.settings.Stages[number]
	}
	open, failures, written := 0, 0, 0
	for host, want := range o.hosts {
		if w.rings[host] != number || w.isHeld(host, target) {
			continue
		}
		if writes[host] {
			open++
			written++
			continue
		}
		if w.repo[host][target] != want {
			continue
		}
		ready, counted, failed := w.ofHost(target, o, host, want, stage)
		failures += failed
		if ready+failed < counted {
			open++
		}
	}
	if written == 0 {
		if failures > stage.MaxFailed {
			w.Halted++
		}
		return
	}
	if w.isReleased(target, o) {
		return
	}
	if failures > stage.MaxFailed {
		w.t.Errorf("%s is written at stage %d though %d clusters have failed", target, number, failures)
	}
	if stage.MaxConcurrent > 0 && open > stage.MaxConcurrent {
		w.t.Errorf("%s has %d hosts under way at stage %d", target, open, number)
	}
	if stage.Approval && !w.isApproved(target) {
		w.t.Errorf("%s is written at stage %d without an approval", target, number)
	}
}

func (w *world) isApproved(target string) bool {
	for _, approval := range w.settings.Approvals {
		if name, _, _ := cut(approval); name == target {
			return true
		}
	}
	return false
}

// checkShare expects the first stage, which takes a share, to be small while nothing has been proven.
func (w *world) checkShare(target string, o *naive, writes map[string]bool) {
	if w.isReleased(target, o) {
		return
	}
	for host, want := range o.hosts {
		if w.repo[host][target] == want {
			return
		}
	}
	share := (len(w.hosts)*w.settings.Stages[0].Percent + 99) / 100
	if len(writes) > share {
		w.t.Errorf("%s: %d of %d hosts get what nobody has proven", target, len(writes), len(o.hosts))
	}
}

func cut(approval string) (name, content string, ok bool) {
	for i := range len(approval) {
		if approval[i] == '@' {
			return approval[:i], approval[i+1:], true
		}
	}
	return approval, "", false
}
