package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// counts are the clusters of a stage.
type counts struct {
	hosts, written, clusters                 int // hosts, those that have what is wanted, and the clusters of all of them
	held                                     int // further hosts, which something holds
	open                                     int // hosts that are written, and of which some cluster is waited for
	ready, soaking, failed, waiting, unknown int
	stuck, lasting                           int         // of those that failed: not ready in time; and for long enough to go back
	ofRoot                                   int         // of those that failed: for that long, and not said of one assignment
	overdue                                  int         // of those that are unknown: for so long that they may be left out
	ends, frees                              []time.Time // when the soak times of clusters end, and of hosts all of whose clusters only soak
	lasts                                    time.Time   // when those that failed have for long enough to go back
	waits, fails                             reasons     // of those that are waited for, or unknown; and of those that failed
}

func (c *counts) total() int { return c.ready + c.soaking + c.failed + c.waiting + c.unknown }

// pass moves on past the stages that are proven, one after the other, unless more clusters of some stage say that what
// is wanted has failed there than may: also those that were proven before.
func (r *run) pass(t *target) {
	if t.state.Failed {
		return
	}
	clear(r.elsewhere)
	for _, m := range t.members {
		if m.touched != nil && m.stage != t.state.Passed && m.counts() && !m.pending() {
			r.countFailed(m, r.changed(t, m), &r.elsewhere[m.stage])
		}
	}
	for i := range r.elsewhere {
		if t.counts = r.elsewhere[i]; t.fails(i, &r.stages[i]) {
			return
		}
	}
	t.counts = counts{}
	for t.state.Passed < len(r.stages) {
		stage := &r.stages[t.state.Passed]
		t.counts = r.count(t, t.state.Passed)
		if t.fails(t.state.Passed, stage) {
			return
		}
		if t.counts.hosts+t.counts.held > 0 && (r.Proposed || !r.areReady(t, stage)) {
			return
		}
		r.notePassedOver(t)
		t.state.Since = r.Now
		t.markProven(t.state.Passed)
		t.state.Passed++
	}
}

// fails notes whether more clusters of a stage have failed than may.
func (t *target) fails(number int, stage *Stage) bool {
	c := &t.counts
	if t.failing = c.failed > stage.MaxFailed; t.failing {
		t.failedAt, t.lasting, t.stuck = number, c.lasting > stage.MaxFailed, c.stuck == c.failed
	}
	return t.failing
}

// notePassedOver says of which clusters the stage that is passed now has no proof.
func (r *run) notePassedOver(t *target) {
	c := &t.counts
	if c.soaking+c.waiting+c.failed+c.unknown == 0 {
		return
	}
	parts := wording.Counts(
		[]int{c.failed - c.stuck, c.stuck, c.soaking + c.waiting, c.unknown},
		"failed",
		"stuck",
		"not ready yet",
		"unknown",
	)
	r.out.PassedOver = append(r.out.PassedOver, fmt.Sprintf("%s passes %s without %s: %s",
		gate.Mark(t.name, t.state.id()), r.stageText(t, t.state.Passed),
		wording.Count(c.total()-c.ready, "cluster", "clusters"), strings.Join(parts, ", ")))
}

// areReady reports whether a stage is proven. After a state was lost it is not known which of the hosts with the
// wanted content got it in this change: then those that got it last must be ready on their own.
func (r *run) areReady(t *target, stage *Stage) bool {
	if !t.counts.proven(stage, r.Settings.SkipUnknown) || !t.state.Guessed {
		return t.counts.proven(stage, r.Settings.SkipUnknown)
	}
	var hosts []*member
	for _, m := range t.members {
		if m.touched != nil && m.stage == t.state.Passed && m.counts() {
			hosts = append(hosts, m)
		}
	}
	slices.SortFunc(hosts, func(a, b *member) int { return r.changed(t, b).Compare(r.changed(t, a)) })
	var c counts
	for i, m := range hosts {
		r.countHost(t, m, stage, &c)
		isLast := i+1 == len(hosts) || !r.changed(t, hosts[i+1]).Equal(r.changed(t, m))
		if isLast && (!c.enough(stage, r.Settings.SkipUnknown) || c.ready == 0 && c.failed > 0 && !c.isPassedOver()) {
			return false
		}
	}
	return true
}

// markProven marks what is written in a stage as proven, whatever is reported later.
func (t *target) markProven(stage int) {
	for _, m := range t.members {
		if m.touched != nil && m.stage == stage && m.counts() && !m.pending() {
			m.touched.Proven = true
		}
	}
}

// proven reports whether enough clusters of a stage have been ready for the soak time, or all of them may be left out.
// Without any report, or when everything is held, nothing is proven.
func (c *counts) proven(stage *Stage, skipUnknown bool) bool {
	return c.written == c.hosts && (c.ready > 0 || c.isPassedOver()) && c.enough(stage, skipUnknown)
}

// isPassedOver reports whether there is nothing to wait for, and nothing ready: all clusters have failed, as they may,
// or have said nothing for long.
func (c *counts) isPassedOver() bool {
	return c.ready+c.soaking+c.waiting == 0 && c.failed+c.unknown > 0 && c.failed == c.lasting+c.ofRoot && c.unknown == c.overdue
}

// enough reports whether as many clusters are ready as the stage asks for.
func (c *counts) enough(stage *Stage, skipUnknown bool) bool {
	total := c.total() - c.failed
	if skipUnknown {
		total -= c.unknown
	}
	return c.ready*100 >= total*stage.ReadyPercent
}

// count counts the clusters of the hosts of a stage that the change reaches.
func (r *run) count(t *target, number int) counts {
	var c counts
	slow, slowHosts, stage := 0, 0, &r.stages[number]
	for _, m := range t.members {
		if m.touched == nil || m.stage != number {
			continue
		}
		if !m.counts() {
			if !m.touched.Proven {
				c.held++
			}
			continue
		}
		c.hosts++
		c.clusters += max(1, len(m.info.Clusters))
		if !r.isWritten(m) {
			continue
		}
		c.written++
		before := c
		r.countHost(t, m, stage, &c)
		waiting := c.waiting - before.waiting
		if !r.Settings.SkipUnknown {
			waiting += c.unknown - before.unknown
		}
		if waiting == 0 && c.soaking == before.soaking {
			continue
		}
		c.open++
		if waiting == 0 {
			c.frees = append(c.frees, slices.MaxFunc(c.ends[len(before.ends):], time.Time.Compare))
		}
		if c.soaking == before.soaking && r.isForLong(r.changed(t, m)) {
			slow, slowHosts = slow+waiting, slowHosts+1
		}
	}
	// Those that the stage can do without, and that have been under way for long, make room for others.
	if slow > 0 && slow*100 <= (c.clusters-c.failed)*(100-stage.ReadyPercent) {
		c.open -= slowHosts
	}
	return c
}

// isWritten says whether the host has what is wanted, and the repository says so, too.
func (r *run) isWritten(m *member) bool {
	if m.pending() {
		return false
	}
	record, ok := r.Records[m.key]
	return !m.wanted || !ok || record.Tree == m.want
}

// changed is when the folder became what it is.
func (r *run) changed(t *target, m *member) time.Time {
	at := r.Records[m.key].Changed
	if !m.wanted { // the commit comes after the evidence that decided it, whose times are whole seconds
		at = m.touched.Gone.Add(time.Second)
	}
	if at.IsZero() {
		at = t.state.Since
	}
	return at
}

func (r *run) countHost(t *target, m *member, stage *Stage, c *counts) {
	changed := r.changed(t, m)
	if m.touched.Proven {
		c.ready += max(1, len(m.info.Clusters)) - r.countFailed(m, changed, c)
		return
	}
	if r.Reports == nil || len(m.info.Clusters) == 0 {
		c.soak(changed, r.Now, stage.Soak)
		return
	}
	for _, cluster := range m.info.Clusters {
		report := r.Reports(cluster, m.key)
		has := report.Known && report.Tree == m.want
		waiting := c.waiting + c.unknown
		switch {
		case r.Now.Before(changed):
			c.waiting++ // the evidence is older than the content
		case report.Verdict == verdict.Failed && (has || !report.Since.Before(changed)):
			r.fail(c, report, changed)
		case report.Verdict == verdict.Ready && has:
			c.soak(verdict.Latest(report.Since, changed), r.Now, stage.Soak)
		case has && !m.wanted && report.Verdict != verdict.Unknown:
			c.soak(changed, r.Now, stage.Soak) // a removed folder cannot become ready
		case r.isLate(changed, report):
			c.fallBehind(report)
		case report.Known && report.Verdict != verdict.Unknown && report.Verdict != "":
			c.waiting++
		case r.Settings.SkipUnknown || !r.isOverdue(changed):
			if c.unknown++; r.Settings.SkipUnknown && r.isForLong(changed) {
				c.overdue++
			}
		default:
			c.fallBehind(report)
		}
		if c.waiting+c.unknown > waiting && !r.Now.Before(changed) {
			c.waits.add(report)
		}
	}
}

// countFailed counts the clusters of a host that was proven and that say now that what they have has failed. Nothing else
// revokes what was proven.
func (r *run) countFailed(m *member, changed time.Time, c *counts) int {
	if r.Reports == nil || !r.isWritten(m) || r.Now.Before(changed) {
		return 0
	}
	before := c.failed
	waiting := c.waiting
	for _, cluster := range m.info.Clusters {
		if report := r.Reports(cluster, m.key); report.Verdict == verdict.Failed && report.Known && report.Tree == m.want {
			r.fail(c, report, changed)
		}
	}
	c.waiting = waiting
	return c.failed - before
}

// fail counts a cluster that says that what it has, since a change, has failed. A failure that has not lasted yet halts
// what would be rolled back, and is waited for where nothing is rolled back. One that is said of the root alone halts, and
// rolls nothing back.
func (r *run) fail(c *counts, report Report, changed time.Time) {
	lasts, at := gate.Soaked(verdict.Latest(report.Since, changed), r.Now, r.Settings.FailedFor)
	if lasts = lasts || r.Settings.FailedFor == 0; lasts || r.Settings.RollBack {
		c.fails.add(report)
	}
	switch {
	case lasts && report.OfRoot:
		c.failed++
		c.ofRoot++
	case lasts:
		c.failed++
		c.lasting++
	case r.Settings.RollBack:
		c.failed++
		c.lasts = verdict.Latest(c.lasts, at)
	default:
		c.waiting++
	}
}

// fallBehind counts a cluster that is not ready in time. Where only the root says so, that rolls nothing back.
func (c *counts) fallBehind(report Report) {
	c.failed++
	c.stuck++
	c.fails.add(report)
	if report.OfRoot {
		c.ofRoot++
	} else {
		c.lasting++
	}
}

func (c *counts) soak(since, now time.Time, soak time.Duration) {
	done, at := gate.Soaked(since, now, soak)
	if done {
		c.ready++
		return
	}
	c.soaking++
	c.ends = append(c.ends, at)
}

// isLate reports whether a cluster with a report has not become ready within the deadline: neither since the
// change, nor since it stopped being ready.
func (r *run) isLate(changed time.Time, report Report) bool {
	return report.Known && report.Verdict != verdict.Unknown && report.Verdict != "" && r.isOverdue(verdict.Latest(changed, report.Since))
}

func (r *run) isOverdue(since time.Time) bool {
	return r.Settings.ProgressDeadline > 0 && r.Now.Sub(since) > r.Settings.ProgressDeadline
}

// IsReady says whether all clusters that are known have what is wanted, and report it as ready. It is for what goes
// without a rollout, so that nothing was kept of what was proven before.
func (in Input) IsReady() bool {
	if in.Reports == nil {
		return true
	}
	for _, key := range in.Wanted.Keys() {
		host := in.Hosts[key.Host]
		if host == nil {
			continue
		}
		for _, cluster := range host.Clusters {
			report := in.Reports(cluster, key)
			if !report.Known || report.Tree != in.Wanted[key.Host][key.DeploymentTarget] || report.Verdict != verdict.Ready {
				return false
			}
		}
	}
	return true
}

// patience is how long a cluster that a stage can do without is waited for where there is no deadline.
const patience = time.Hour

// isForLong reports whether a cluster that a stage can do without has had its time.
func (r *run) isForLong(since time.Time) bool {
	limit := r.Settings.ProgressDeadline
	if limit == 0 {
		limit = patience
	}
	return r.Now.Sub(since) > limit
}

// proves says whether the content of a folder is proven on its host.
func (r *run) proves(key folder.Key) bool {
	t := r.targets[key.DeploymentTarget]
	if t == nil || t.byHost[key.Host] == nil {
		return true // the folder neither exists nor is wanted
	}
	m := t.byHost[key.Host]
	switch {
	case m.hold != nil || m.info == nil:
		return true
	case t.undecided || m.pending() || m.touched != nil && (t.failing || t.state.Failed):
		return false
	case m.touched == nil || m.touched.Proven:
		return true
	case r.Proposed || !r.isWritten(m):
		return false
	}
	var c counts
	r.countHost(t, m, &r.stages[m.stage], &c)
	unknown := c.unknown
	if r.Settings.SkipUnknown && c.ready > 0 {
		unknown = 0
	}
	return c.ready > 0 && c.soaking+c.waiting+c.failed+unknown == 0
}
