package rollout_test

import (
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// targetOracle follows one deployment target. It remembers everything even if the state is lost, evaluates every host in each
// step, and shares no code with the product. An empty tree means no folder.
type targetOracle struct {
	version    string
	isIdle     bool              // no change is under way
	hosts      map[string]string // wanted trees of the current change, by host
	carried    map[string]bool   // hosts with the wanted tree at the start of the change
	late       map[string]bool   // new hosts of passed stages
	held       map[string]bool
	isPending  bool // some host lacked its wanted tree after the previous step; the host may have left since
	passed     map[int]bool
	rolledBack bool
	proven     map[string]string          // proven trees by host
	former     map[string]string          // trees before any unproven content, by host
	possible   map[string]map[string]bool // by host, trees at the loss of the state and at later changes; nil unless the state was lost
	initial    map[string]string          // wanted trees at the time of joining, by host
	failed     map[string]bool            // host + tree of each rollback
	removedAt  map[string]time.Time
}

func newTargetOracle() *targetOracle {
	o := &targetOracle{removedAt: map[string]time.Time{}, proven: map[string]string{}, initial: map[string]string{}}
	o.resetChange()
	return o
}

// resetChange forgets the current change.
func (o *targetOracle) resetChange() {
	o.hosts, o.carried, o.late, o.passed = map[string]string{}, map[string]bool{}, map[string]bool{}, map[int]bool{}
	o.held = map[string]bool{}
	o.former, o.failed, o.rolledBack = map[string]string{}, map[string]bool{}, false
}

// isProven reports whether the host proved the tree.
func (o *targetOracle) isProven(host, tree string) bool {
	proven, ok := o.proven[host]
	return ok && proven == tree
}

func (w *simWorld) isHeld(host, target string) bool {
	for _, hold := range w.holds {
		if slices.Contains(hold.Hosts, host) && slices.Contains(hold.DeploymentTargets, target) {
			return true
		}
	}
	return false
}

// checkStep compares a decision with the oracles.
func (w *simWorld) checkStep(out *rollout.Outcome) {
	after := out.Decisions.Trees(w.repo)
	for _, target := range w.targets {
		o := w.oracle[target]
		w.checkTarget(target, o, after)
		if state := out.State.Targets[target]; state == nil || !state.Guessed {
			o.possible = nil // the state has the hosts of the change again
		}
	}
}

func (w *simWorld) checkTarget(target string, o *targetOracle, after folder.Trees) {
	w.updateOracle(target, o)
	failing, lasting := w.passStages(target, o)
	writes, rollbacks := map[string]bool{}, map[string]bool{}
	for host := range w.hosts {
		before, decided := w.repo[host][target], after[host][target]
		switch {
		case before == decided:
		case decided == w.wanted[host][target]:
			writes[host] = true
		default:
			rollbacks[host] = true
		}
	}
	w.checkRollback(target, o, after, rollbacks, lasting)
	if failing && len(writes) > 0 && o.possible == nil && !w.isReleased(target, o) {
		w.t.Errorf("%s is written on %v after clusters failed with it", target, slices.Sorted(maps.Keys(writes)))
	}
	if w.percent {
		w.checkShare(target, o, writes)
	} else {
		w.checkStages(target, o, writes)
	}
	if w.isReleased(target, o) {
		for host := range writes { // new hosts, which get the released content
			o.proven[host] = w.wanted[host][target]
		}
	}
	for host := range writes {
		w.checkWrite(target, o, host)
	}
	o.isPending = false
	for host := range after {
		o.isPending = o.isPending || w.hosts[host] == nil && after.Has(host, target)
	}
	for host, want := range o.hosts {
		o.isPending = o.isPending || after[host][target] != want
	}
}

func (w *simWorld) checkWrite(target string, o *targetOracle, host string) {
	want := w.wanted[host][target]
	if w.isHeld(host, target) {
		w.t.Errorf("%s/%s is written while it is held", host, target)
	}
	shut := w.shut[w.rings[host]]
	if w.percent { // the host may belong to the share, and only the share selects the first ring
		shut = shut && w.shut[0] && w.rings[host] > 0
	}
	if w.closed || shut {
		w.t.Errorf("%s/%s is written while windows are closed", host, target)
	}
	if o.failed[host+want] && want != "" && !w.isRetried(target) {
		w.t.Errorf("%s/%s: %q failed, and is retried without approval", host, target, want)
	}
	if required := w.requires[target]; required != "" && want != "" {
		if now := w.wanted[host][required]; now != "" && now != w.repo[host][required] && !w.isHeld(host, required) {
			w.t.Errorf("%s/%s is written before the required %s", host, target, required)
		}
	}
	if want == "" {
		w.checkRemoval(target, o, host)
		o.removedAt[host] = w.now
	}
}

// checkRemoval expects every addition of the change to be written before a removal, except on held and new hosts.
func (w *simWorld) checkRemoval(target string, o *targetOracle, host string) {
	if len(w.settings.Stages) == 0 {
		return
	}
	for other, want := range o.hosts {
		if want != "" && w.repo[other][target] != want && !o.held[other] && o.initial[other] != want {
			w.t.Errorf("%s/%s is removed before %s has its wanted content", host, target, other)
		}
	}
}

// checkRollback expects a failed change to be rolled back at once, on all of its hosts and on no others, to their former trees.
// The former trees may be unknown only after the loss of the state.
func (w *simWorld) checkRollback(target string, o *targetOracle, after folder.Trees, rollbacks map[string]bool, failing bool) {
	if len(rollbacks) == 0 && (!failing || !w.settings.RollBack || o.possible != nil || w.percent) {
		return
	}
	if !w.settings.RollBack || !failing && !o.rolledBack && !w.percent && o.possible == nil {
		w.t.Errorf("%s is rolled back on %v without a failure, or though on_failure is halt", target, slices.Sorted(maps.Keys(rollbacks)))
	}
	for host, want := range o.hosts {
		decided := after[host][target]
		switch {
		case w.isHeld(host, target):
			if rollbacks[host] {
				w.t.Errorf("%s/%s is rolled back while it is held", host, target)
			}
		case w.percent: // any written host may be in the share, so the proven hosts are unknown
			if rollbacks[host] && !w.hadBefore(host, target, decided) {
				w.t.Errorf("%s/%s is rolled back to %q, which it never had", host, target, decided)
			}
		case w.repo[host][target] != want: // the failed content was not written here
			if rollbacks[host] {
				w.t.Errorf("%s/%s is rolled back without the failed content", host, target)
			}
		case decided != o.former[host] && !o.possible[host][decided] && (w.isEstablished(target, o, host) || decided != ""):
			w.t.Errorf("%s/%s after the rollback: got %q, want %q", host, target, decided, o.former[host])
		}
		o.failed[host+want] = true
		delete(o.proven, host)
	}
	for host := range rollbacks {
		if _, reached := o.hosts[host]; !reached && o.possible == nil {
			w.t.Errorf("%s/%s is rolled back, and is not part of the failed change", host, target)
		}
	}
	o.rolledBack, o.passed, o.late = true, map[int]bool{}, map[string]bool{}
}

// hadBefore reports whether the host had the tree in any commit.
func (w *simWorld) hadBefore(host, target, tree string) bool {
	return slices.ContainsFunc(w.commits, func(commit folder.Trees) bool { return commit[host][target] == tree })
}

func (w *simWorld) isRetried(target string) bool { // an approval with the number of an attempt
	for _, approval := range w.settings.Approvals {
		if name, content, _ := splitApproval(approval); name == target && len(content) > 10 {
			return true
		}
	}
	return false
}

// updateOracle notes new content, and hosts that joined or left.
func (w *simWorld) updateOracle(target string, o *targetOracle) {
	for _, byHost := range []map[string]string{o.hosts, o.former, o.proven} {
		maps.DeleteFunc(byHost, func(host, _ string) bool { return w.hosts[host] == nil })
	}
	if o.isIdle = w.isChangeComplete(target, o); o.isIdle {
		o.resetChange()
	}
	if w.lost {
		w.noteLostState(target, o)
	}
	if w.isNewChange(target, o) {
		w.beginChange(target, o)
	}
	for host := range w.hosts {
		if !w.isExisting(host) && w.wanted[host][target] != "" {
			o.initial[host] = w.wanted[host][target]
		}
	}
	if w.isReleased(target, o) { // no change is under way
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

// noteLostState forgets the facts that the repository does not record.
func (w *simWorld) noteLostState(target string, o *targetOracle) {
	// The repository has no record of removed folders.
	maps.DeleteFunc(o.hosts, func(host, want string) bool { return want == "" && !w.repo.Has(host, target) })
	if !w.isRollbackRecorded(target) { // nor of folders that were added and failed
		o.failed, o.rolledBack = map[string]bool{}, false
	}
	o.possible = map[string]map[string]bool{}
	w.notePossibleTrees(target, o)
	for host := range w.hosts { // every host with its wanted value counts as part of the change
		if want := w.wanted[host][target]; w.values != nil && w.repo[host][target] == want {
			o.hosts[host] = want
		}
	}
}

func (w *simWorld) notePossibleTrees(target string, o *targetOracle) {
	for host := range w.hosts {
		if o.possible[host] == nil { // a host that joined since the loss may have had no folder
			o.possible[host] = map[string]bool{"": !w.lost}
		}
		o.possible[host][w.repo[host][target]] = true
		if w.values != nil {
			o.possible[host][w.values.released] = true // from the argument released
		}
	}
}

// isNewChange reports whether the wanted content differs from the current change.
func (w *simWorld) isNewChange(target string, o *targetOracle) bool {
	joins, some := false, false
	for host, want := range o.hosts {
		if want != w.wanted[host][target] {
			return true
		}
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		_, reached := o.hosts[host]
		known := w.isEstablished(target, o, host)
		if !reached && want != have && known {
			return true
		}
		joins = joins || want != "" && !reached && !known
		some = some || want != "" && (reached || have == want)
	}
	return joins && !some && !o.isIdle // content that no host has is not released
}

// beginChange begins a change. Unproven written content becomes part of it.
func (w *simWorld) beginChange(target string, o *targetOracle) {
	before, former := o.hosts, o.former
	o.resetChange()
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
	if o.possible != nil {
		w.notePossibleTrees(target, o)
	}
}

// isRollbackRecorded reports whether the repository records that the wanted content was rolled back.
func (w *simWorld) isRollbackRecorded(target string) bool {
	for host := range w.hosts {
		record, ok := w.records[folder.Key{Host: host, DeploymentTarget: target}]
		if want := w.wanted[host][target]; ok && want != "" && record.Tree != want && record.Before == want {
			return true
		}
	}
	return false
}

// isChangeComplete reports whether the change ended with the previous step.
func (w *simWorld) isChangeComplete(target string, o *targetOracle) bool {
	if o.isPending && len(o.hosts) > 0 && !w.lost {
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

// isEstablished reports whether the host is not new: it did not join since the previous step, or, with its present wanted
// content, since the loss of the state. A host that joined since then seems to be part of a current change.
func (w *simWorld) isEstablished(target string, o *targetOracle, host string) bool {
	want, joined := o.initial[host]
	return w.isExisting(host) && (o.possible == nil || !joined || want != w.wanted[host][target])
}

// isReleased reports whether all hosts except new ones have their wanted content.
func (w *simWorld) isReleased(target string, o *targetOracle) bool {
	some := false
	if !o.isIdle {
		return false
	}
	for host := range w.hosts {
		want, have := w.wanted[host][target], w.repo[host][target]
		known := w.isEstablished(target, o, host)
		if want != have && (known || w.isHeld(host, target)) {
			return false
		}
		some = some || want == have && want != ""
	}
	return some
}
