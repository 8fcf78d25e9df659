package rollout

import (
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// prover decides what is proven.
type prover struct {
	StepInput
	stageTable
}

// counts counts the clusters of a stage.
type counts struct {
	hosts, written, clusters                 int // written: with the wanted content
	held                                     int // further hosts under a hold
	open                                     int // written hosts with clusters that are not ready
	ready, soaking, failed, waiting, unknown int
	stuck, lasting                           int // failed clusters: not ready in time; for long enough to roll back
	// failed clusters, for long enough, but only by the root
	ofRoot       int
	overdue      int         // unknown clusters, for so long that they may be skipped
	ends, frees  []time.Time // of the soak times of clusters, and of hosts whose clusters only soak
	lasts        time.Time   // when the failures have lasted long enough to roll back
	waits, fails reasons     // reasons of clusters that are not ready, and of failed ones
}

func (c *counts) total() int { return c.ready + c.soaking + c.failed + c.waiting + c.unknown }

// pass passes proven stages. It stops if too many clusters of any stage have failed, even of a proven one.
func (r *tracker) pass(t *target) {
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
		for _, m := range t.members {
			if m.touched != nil && m.stage == t.state.Passed && m.counts() && !m.pending() {
				m.touched.Proven = true
			}
		}
		t.state.Passed++
	}
}

// fails records whether too many clusters of a stage have failed.
func (t *target) fails(number int, stage *Stage) bool {
	c := &t.counts
	if t.failing = c.failed > stage.MaxFailed; t.failing {
		t.failedAt, t.lasting, t.stuck = number, c.lasting > stage.MaxFailed, c.stuck == c.failed
	}
	return t.failing
}

func (r *tracker) notePassedOver(t *target) {
	if c := &t.counts; c.total() > c.ready {
		r.passedOver = append(r.passedOver, PassedStage{
			Approval: gate.Mark(t.name, t.state.id()), Stage: r.placeOf(t, t.state.Passed),
			Failed: c.failed - c.stuck, Stuck: c.stuck, NotReady: c.soaking + c.waiting, Unknown: c.unknown,
		})
	}
}

// areReady reports whether a stage is proven. After a lost state, the hosts that were written last must be ready on their own.
func (r *prover) areReady(t *target, stage *Stage) bool {
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

// proven reports whether enough clusters have been ready for the soak time, or all may be skipped. Without reports, nothing is
// proven.
func (c *counts) proven(stage *Stage, skipUnknown bool) bool {
	return c.written == c.hosts && (c.ready > 0 || c.isPassedOver()) && c.enough(stage, skipUnknown)
}

// isPassedOver reports whether each cluster has failed, within max_failed, or has been silent for long.
func (c *counts) isPassedOver() bool {
	return c.ready+c.soaking+c.waiting == 0 && c.failed+c.unknown > 0 && c.failed == c.lasting+c.ofRoot && c.unknown == c.overdue
}

func (c *counts) enough(stage *Stage, skipUnknown bool) bool {
	total := c.total() - c.failed
	if skipUnknown {
		total -= c.unknown
	}
	return c.ready*100 >= total*stage.ReadyPercent
}

func (r *prover) count(t *target, number int) counts {
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
	// Dispensable clusters make room for others after a while.
	if slow > 0 && slow*100 <= (c.clusters-c.failed)*(100-stage.ReadyPercent) {
		c.open -= slowHosts
	}
	return c
}

// isWritten also looks at the records.
func (r *prover) isWritten(m *member) bool {
	if m.pending() {
		return false
	}
	record, ok := r.Records[m.key]
	return !m.wanted || !ok || record.Tree == m.want
}

func (r *prover) changed(t *target, m *member) time.Time {
	at := r.Records[m.key].Changed
	if !m.wanted { // the commit follows the evidence, whose times are whole seconds
		at = m.touched.Gone.Add(time.Second)
	}
	if at.IsZero() {
		at = t.state.Since
	}
	return at
}

func (r *prover) countHost(t *target, m *member, stage *Stage, c *counts) {
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

// countFailed counts failures of a proven host. Nothing else revokes a proof.
func (r *prover) countFailed(m *member, changed time.Time, c *counts) int {
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

// fail counts a failed cluster. Until the failure has lasted long enough, a change that would be rolled back halts, and any other
// waits. A failure of the root rolls nothing back.
func (r *prover) fail(c *counts, report Report, changed time.Time) {
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

// fallBehind counts a cluster that is not ready in time.
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

// isLate reports whether a cluster missed the deadline, which starts at the change or when it stopped being ready.
func (r *prover) isLate(changed time.Time, report Report) bool {
	return report.Known && report.Verdict != verdict.Unknown && report.Verdict != "" && r.isOverdue(verdict.Latest(changed, report.Since))
}

func (r *prover) isOverdue(since time.Time) bool {
	return r.Settings.ProgressDeadline > 0 && r.Now.Sub(since) > r.Settings.ProgressDeadline
}

// IsReady reports whether every known cluster reports the wanted content as ready.
func (in StepInput) IsReady() bool {
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

// patience is the time for a dispensable cluster without a deadline.
const patience = time.Hour

func (r *prover) isForLong(since time.Time) bool {
	limit := r.Settings.ProgressDeadline
	if limit == 0 {
		limit = patience
	}
	return r.Now.Sub(since) > limit
}

func (r *decider) proves(key folder.Key) bool {
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

// reason is the message of a check.
type reason struct{ source, message string }

// reasons counts clusters by reason.
type reasons struct {
	by     map[reason]int
	first  reason // the most common one, or the first of several
	agents int    // clusters that only agents call not ready
}

func (r *reasons) add(report Report) {
	if report.Source == "" {
		r.agents++
		return
	}
	if r.by == nil {
		r.by = map[reason]int{}
	}
	why := reason{report.Source, report.Message}
	if r.by[why]++; r.by[why] > r.by[r.first] {
		r.first = why
	}
}

// most returns the most common reason; zero without checks.
func (r *reasons) most() Reason {
	if r.first.source == "" {
		return Reason{}
	}
	most, all := Reason{Message: r.first.message}, 0
	for why, clusters := range r.by {
		all += clusters
		if why.source == r.first.source && why != r.first {
			most.Others += clusters
		}
	}
	most.IsMost = all >= r.agents
	return most
}
