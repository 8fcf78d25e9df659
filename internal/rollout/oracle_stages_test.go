package rollout_test

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// passStages notes which stages are passed, and says whether the first that is not has failed.
func (w *world) passStages(target string, o *naive) (failing bool) {
	if w.percent {
		return false
	}
	for stage := range len(w.settings.Stages) + 1 {
		if !o.passed[stage] && w.isProven(target, o, stage) {
			o.passed[stage] = true
			for host, want := range o.hosts {
				if w.rings[host] == stage && w.repo[host][target] == want && !w.isHeld(host, target) {
					o.proven[host] = want
				}
			}
		}
		if !o.passed[stage] {
			return w.failures(target, o, stage) > w.stage(stage).MaxFailed
		}
	}
	return false
}

func (w *world) stage(number int) rollout.Stage {
	if number < len(w.settings.Stages) {
		return w.settings.Stages[number]
	}
	return rollout.Stage{ReadyPercent: 100}
}

func (w *world) failures(target string, o *naive, number int) int {
	failures := 0
	for host, want := range o.hosts {
		if w.rings[host] == number && !w.isHeld(host, target) && w.repo[host][target] == want {
			_, _, failed := w.ofHost(target, o, host, want, w.stage(number))
			failures += failed
		}
	}
	return failures
}

// checkStages expects all stages before one that is written to be proven, and no more in flight than allowed.
func (w *world) checkStages(target string, o *naive, writes map[string]bool) {
	last := len(w.settings.Stages)
	for stage := range last + 1 {
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

// isProven says whether a stage needs nothing more.
func (w *world) isProven(target string, o *naive, number int) bool {
	stage := w.stage(number)
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
		return held == 0 || o.lost != nil // others that have what is wanted may be thought to be part of it
	}
	some := ready > 0 || o.lost != nil && w.settings.SkipUnknown // others that are ready may have had it before
	return failed <= stage.MaxFailed && some && ready*100 >= (counted-failed)*stage.ReadyPercent
}

// ofHost counts the clusters of a host: those that are ready for long enough, those that count, those that
// failed.
func (w *world) ofHost(target string, o *naive, host, want string, stage rollout.Stage) (ready, counted, failed int) {
	clusters := w.hosts[host].Clusters
	if o.isProven(host, want) {
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
		case report.Tree == want && want == "" && report.Verdict != rollout.Ready && !changed.Add(stage.Soak).After(w.now),
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
	stage := w.stage(number)
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

// checkShare expects the first stage, which takes a share, to be all that has something unproven until that
// is proven.
func (w *world) checkShare(target string, o *naive, writes map[string]bool) {
	if w.isReleased(target, o) || o.passed[0] {
		return
	}
	reached, free, held, proven, unproven := 0, 0, 0, 0, 0
	for host, want := range o.hosts {
		if !o.carried[host] {
			reached++
		}
		has := w.repo[host][target] == want
		if w.isHeld(host, target) {
			if has {
				held++
			}
			continue
		}
		free++
		if (has || writes[host]) && !o.carried[host] {
			unproven++
		}
		if ready, counted, failed := w.ofHost(target, o, host, want, w.settings.Stages[0]); has && ready == counted && failed == 0 {
			proven++
		}
	}
	share := func(of int) int { return (of*w.settings.Stages[0].Percent + 99) / 100 }
	most := share(reached)
	if o.lost != nil { // then all may be looked at, and what was written before the last step is not known to be of the share
		most = 2 * share(len(w.hosts))
	}
	if o.passed[0] = proven >= min(share(reached)-held, free); !o.passed[0] && len(writes) > 0 && unproven > most {
		w.t.Errorf("%s: %d of %d hosts get what nobody has proven", target, unproven, len(o.hosts))
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
