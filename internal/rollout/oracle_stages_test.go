package rollout_test

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// A turn is a stage of additions or, after all of these, of removals. Without stages there is one turn.

func (w *simWorld) turns() int {
	if all := len(w.settings.Stages) + 1; all > 1 {
		return 2 * all
	}
	return 1
}

func (w *simWorld) turn(host, want string) int {
	if want == "" && len(w.settings.Stages) > 0 {
		return w.rings[host] + len(w.settings.Stages) + 1
	}
	return w.rings[host]
}

// passStages notes the passed stages. It reports whether one of them or the first other stage has failed, and whether the failure
// has lasted long enough for a rollback.
func (w *simWorld) passStages(target string, o *targetOracle) (failing, lasting bool) {
	if w.percent {
		return false, false
	}
	first := 0
	for o.passed[first] {
		first++
	}
	for stage := range w.turns() {
		if stage != first {
			if failed, lasting := w.countFailures(target, o, stage, w.countReportedFailures); failed > w.stage(stage).MaxFailed {
				return true, lasting > w.stage(stage).MaxFailed
			}
		}
	}
	for stage := range w.turns() {
		// A stage may have passed while all of its hosts were held. After the loss of the state, it may be proven later.
		if (!o.passed[stage] || o.possible != nil) && w.isProven(target, o, stage) {
			o.passed[stage] = true
			for host, want := range o.hosts {
				if w.turn(host, want) == stage && w.repo[host][target] == want && !w.isHeld(host, target) {
					o.proven[host] = want
				}
			}
		}
		if !o.passed[stage] {
			failed, lasting := w.countFailures(target, o, stage, func(target string, o *targetOracle, host, want string) clusterCount {
				return w.countClusters(target, o, host, want, w.stage(stage))
			})
			return failed > w.stage(stage).MaxFailed, lasting > w.stage(stage).MaxFailed
		}
	}
	return false, false
}

func (w *simWorld) stage(number int) rollout.Stage {
	if number %= len(w.settings.Stages) + 1; number < len(w.settings.Stages) {
		return w.settings.Stages[number]
	}
	return rollout.Stage{ReadyPercent: 100}
}

func (w *simWorld) countFailures(
	target string, o *targetOracle, number int, countClusters func(target string, o *targetOracle, host, want string) clusterCount,
) (failed, lasting int) {
	for host, want := range o.hosts {
		if w.turn(host, want) == number && !w.isHeld(host, target) && w.repo[host][target] == want {
			c := countClusters(target, o, host, want)
			failed, lasting = failed+c.failed, lasting+c.lasting
		}
	}
	return failed, lasting
}

// checkStages expects every stage before a written stage to be proven, and max_concurrent to be obeyed.
func (w *simWorld) checkStages(target string, o *targetOracle, writes map[string]bool) {
	for stage := range w.turns() {
		if !o.passed[stage] {
			w.checkConcurrent(target, o, stage, writes)
			for later := stage + 1; later < w.turns(); later++ {
				for host := range writes {
					switch {
					case w.turn(host, w.wanted[host][target]) != later || w.isReleased(target, o):
					case w.isGuessed(target, stage):
						o.passed[stage] = true
					default:
						w.t.Errorf("%s/%s, of stage %d, is written while stage %d is not proven", host, target, later, stage)
					}
				}
			}
			return
		}
		for host := range writes {
			if w.turn(host, w.wanted[host][target]) == stage {
				o.proven[host] = w.wanted[host][target] // a new host gets the released content
				o.late[host] = true
			}
		}
	}
}

func (w *simWorld) isProven(target string, o *targetOracle, number int) bool {
	stage := w.stage(number)
	hosts, held := 0, 0
	var all clusterCount
	for host, want := range o.hosts {
		if w.turn(host, want) != number || o.late[host] {
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
		c := w.countClusters(target, o, host, want, stage)
		all.ready, all.counted, all.failed = all.ready+c.ready, all.counted+c.counted, all.failed+c.failed
		all.lasting, all.silent, all.fresh = all.lasting+c.lasting, all.silent+c.silent, all.fresh+c.fresh
	}
	if hosts == 0 {
		return held == 0 || o.possible != nil // other hosts with the wanted content may count as part of the change
	}
	some := all.ready > 0 || o.possible != nil && w.settings.SkipUnknown // ready hosts outside the change may count
	over := all.counted == all.failed && all.failed == all.lasting && all.fresh == 0 && all.failed+all.silent > 0
	return all.failed <= stage.MaxFailed && (some || over) && all.ready*100 >= (all.counted-all.failed)*stage.ReadyPercent
}

// isGuessed reports whether the stage counts as passed because of the records, after the loss of the state.
func (w *simWorld) isGuessed(target string, number int) bool {
	state := (*rollout.ChangeState)(nil)
	if w.state != nil {
		state = w.state.Targets[target]
	}
	return state != nil && state.Guessed && state.Passed > number
}

// clusterCount is the number of a host's clusters by status.
type clusterCount struct {
	ready   int // for the soak time
	counted int
	failed  int
	lasting int // failed for long enough for a rollback
	silent  int // not counted, without reports for long
	fresh   int // not counted, without reports for a short time
}

func (w *simWorld) countClusters(target string, o *targetOracle, host, want string, stage rollout.Stage) (c clusterCount) {
	clusters := w.hosts[host].Clusters
	key := folder.Key{Host: host, DeploymentTarget: target}
	changed := w.records[key].Changed
	if want == "" {
		changed = o.removedAt[host]
	}
	if o.isProven(host, want) {
		c = w.countReportedFailures(target, o, host, want)
		c.ready, c.counted = max(1, len(clusters))-c.failed, max(1, len(clusters))
		return c
	}
	if len(clusters) == 0 {
		if c.counted = 1; !changed.Add(stage.Soak).After(w.now) {
			c.ready = 1
		}
		return c
	}
	limit := w.settings.ProgressDeadline
	if limit == 0 {
		limit = time.Hour
	}
	for _, name := range clusters {
		report := w.report(name, key)
		c.counted++
		since := later(report.Since, changed)
		late := w.settings.ProgressDeadline > 0 && w.now.Sub(since) > w.settings.ProgressDeadline
		switch {
		case !report.Known && w.settings.SkipUnknown:
			if c.counted--; w.now.Sub(changed) > limit {
				c.silent++
			} else {
				c.fresh++
			}
		case report.Verdict == verdict.Failed && report.Tree == want, report.Verdict == verdict.Failed && !report.Since.Before(changed):
			w.countFailure(&c, since)
		case !report.Known && late:
			c.failed++
			c.lasting++
		case !report.Known:
		case report.Tree == want && want == "" && report.Verdict != verdict.Ready && !changed.Add(stage.Soak).After(w.now),
			report.Tree == want && report.Verdict == verdict.Ready && !since.Add(stage.Soak).After(w.now):
			c.ready++
		case late && (report.Tree != want || report.Verdict != verdict.Ready && want != ""):
			c.failed++
			c.lasting++
		}
	}
	return c
}

// countReportedFailures counts the clusters of a host that report the wanted content as failed.
func (w *simWorld) countReportedFailures(target string, o *targetOracle, host, want string) (c clusterCount) {
	key := folder.Key{Host: host, DeploymentTarget: target}
	changed := w.records[key].Changed
	if want == "" {
		changed = o.removedAt[host]
	}
	for _, name := range w.hosts[host].Clusters {
		if report := w.report(name, key); report.Verdict == verdict.Failed && report.Tree == want {
			w.countFailure(&c, later(report.Since, changed))
		}
	}
	return c
}

func (w *simWorld) countFailure(c *clusterCount, since time.Time) {
	lasts := !since.Add(w.settings.FailedFor).After(w.now)
	if lasts || w.settings.RollBack {
		c.failed++
	}
	if lasts {
		c.lasting++
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// checkConcurrent expects an unproven stage to obey max_concurrent, and to write no host once max_failed is exceeded.
func (w *simWorld) checkConcurrent(target string, o *targetOracle, number int, writes map[string]bool) {
	stage := w.stage(number)
	open, failures, written := 0, 0, 0
	for host, want := range o.hosts {
		if w.turn(host, want) != number || w.isHeld(host, target) {
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
		c := w.countClusters(target, o, host, want, stage)
		failures += c.failed
		changed := w.records[folder.Key{Host: host, DeploymentTarget: target}].Changed
		if isSlow := stage.ReadyPercent < 100 && w.now.Sub(changed) > time.Hour; c.ready+c.failed < c.counted && !isSlow {
			open++ // a slow host is not counted, since ready_percent may be reached without it
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

func (w *simWorld) isApproved(target string) bool {
	for _, approval := range w.settings.Approvals {
		if name, _, _ := splitApproval(approval); name == target {
			return true
		}
	}
	return false
}

// checkShare expects unproven content only on the share of the first stage until the share is proven: first for additions, then
// for removals.
func (w *simWorld) checkShare(target string, o *targetOracle, writes map[string]bool) {
	if w.isReleased(target, o) {
		return
	}
	for _, removes := range []bool{false, true} {
		place := 0
		if removes {
			place = len(w.settings.Stages) + 1
		}
		if !o.passed[place] {
			o.passed[place] = w.isShareProven(target, o, writes, removes)
		}
	}
}

func (w *simWorld) isShareProven(target string, o *targetOracle, writes map[string]bool, removes bool) bool {
	reached, unheld, held, proven, unproven, written := 0, 0, 0, 0, 0, 0
	for host, want := range o.hosts {
		if removes != (want == "") {
			continue
		}
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
		unheld++
		if writes[host] {
			written++
		}
		if (has || writes[host]) && !o.carried[host] {
			unproven++
		}
		if c := w.countClusters(target, o, host, want, w.settings.Stages[0]); has && c.ready == c.counted && c.failed == 0 {
			proven++
		}
	}
	share := func(of int) int { return (of*w.settings.Stages[0].Percent + 99) / 100 }
	most := share(reached)
	if o.possible != nil { // the share may be of all hosts, and hosts written before the last step may be outside it
		most = 2 * share(len(w.hosts))
	}
	isProven := proven >= min(share(reached)-held, unheld)
	if !isProven && written > 0 && unproven > most {
		w.t.Errorf("%s: %d of %d hosts get unproven content", target, unproven, len(o.hosts))
	}
	return isProven
}

func splitApproval(approval string) (name, content string, ok bool) {
	for i := range len(approval) {
		if approval[i] == '@' {
			return approval[:i], approval[i+1:], true
		}
	}
	return approval, "", false
}
