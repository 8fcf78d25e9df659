package rollout

import (
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/gate"
)

// counts are the clusters of a stage.
type counts struct {
	hosts, written                           int // hosts, and those that have what is wanted
	held                                     int // further hosts, which something holds
	open                                     int // hosts that are written, and of which some cluster is waited for
	ready, soaking, failed, waiting, unknown int
	silent                                   bool      // there are no reports
	soaked                                   time.Time // when the soak time of the last one ends
}

func (c *counts) total() int { return c.ready + c.soaking + c.failed + c.waiting + c.unknown }

// pass moves on past the stages that are proven, one after the other.
func (r *run) pass(t *target) {
	for t.state.Passed < len(r.stages) && !t.state.Failed {
		stage := &r.stages[t.state.Passed]
		t.counts = r.count(t, t.state.Passed)
		if t.counts.failed > stage.MaxFailed {
			t.failing = true
			return
		}
		if t.counts.hosts+t.counts.held > 0 && (r.Proposed || !r.areReady(t, stage)) {
			return
		}
		t.state.Since = r.Now
		t.markProven(t.state.Passed)
		t.state.Passed++
	}
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
		if isLast && (!c.enough(stage, r.Settings.SkipUnknown) || c.ready == 0 && c.failed > 0) {
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

// proven reports whether enough clusters of a stage have been ready for the soak time. Without any report, or
// when everything is held, nothing is proven.
func (c *counts) proven(stage *Stage, skipUnknown bool) bool {
	return c.written == c.hosts && c.ready > 0 && c.enough(stage, skipUnknown)
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
func (r *run) count(t *target, stage int) counts {
	var c counts
	for _, m := range t.members {
		if m.touched == nil || m.stage != stage {
			continue
		}
		if !m.counts() {
			if !m.touched.Proven {
				c.held++
			}
			continue
		}
		c.hosts++
		if !r.isWritten(m) {
			continue
		}
		c.written++
		before := c
		r.countHost(t, m, &r.stages[stage], &c)
		if c.soaking > before.soaking || c.waiting > before.waiting || !r.Settings.SkipUnknown && c.unknown > before.unknown {
			c.open++
		}
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
	if m.touched.Proven {
		c.ready += max(1, len(m.info.Clusters))
		return
	}
	changed := r.changed(t, m)
	if r.Reports == nil || len(m.info.Clusters) == 0 {
		c.silent = true
		c.soak(changed, r.Now, stage.Soak)
		return
	}
	for _, cluster := range m.info.Clusters {
		report := r.Reports(cluster, m.key)
		has := report.Known && report.Tree == m.want
		switch {
		case r.Now.Before(changed):
			c.waiting++ // the evidence is older than the content
		case report.Verdict == Failed && (has || !report.Since.Before(changed)):
			c.failed++
		case report.Verdict == Ready && has:
			c.soak(latest(report.Since, changed), r.Now, stage.Soak)
		case has && !m.wanted && report.Verdict != Unknown:
			c.soak(changed, r.Now, stage.Soak) // a removed folder cannot become ready
		case r.isLate(changed, report):
			c.failed++
		case report.Known && report.Verdict != Unknown && report.Verdict != "":
			c.waiting++
		case r.Settings.SkipUnknown || !r.isOverdue(changed):
			c.unknown++
		default:
			c.failed++
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (c *counts) soak(since, now time.Time, soak time.Duration) {
	done, at := gate.Soaked(since, now, soak)
	if done {
		c.ready++
		return
	}
	c.soaking++
	c.soaked = latest(c.soaked, at)
}

// isLate reports whether a cluster with a report has not become ready within the deadline: neither since the
// change, nor since it stopped being ready.
func (r *run) isLate(changed time.Time, report Report) bool {
	return report.Known && report.Verdict != Unknown && report.Verdict != "" && r.isOverdue(latest(changed, report.Since))
}

func (r *run) isOverdue(since time.Time) bool {
	return r.Settings.ProgressDeadline > 0 && r.Now.Sub(since) > r.Settings.ProgressDeadline
}

// proves says whether the content of a folder is proven on its host.
func (r *run) proves(key Key) bool {
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
