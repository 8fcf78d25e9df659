package rollout

import (
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

// windowCheck checks the windows of the rollout and of stages.
type windowCheck struct {
	*prover
	open     bool            // the windows of the rollout
	shut     []bool          // by stage; nil if all are open
	openings map[int]opening // by stage
	written  map[int]bool    // by stage
}

func newWindowCheck(p *prover) *windowCheck {
	r := &windowCheck{prover: p, open: true, openings: map[int]opening{}, written: map[int]bool{}}
	if p.Settings == nil {
		return r
	}
	r.open = p.Settings.Windows.Open(p.Now)
	for i := range p.Settings.Stages {
		if !p.Settings.Stages[i].Windows.Open(p.Now) {
			if r.shut == nil {
				r.shut = make([]bool, p.ways)
			}
			r.shut[i] = true
		}
	}
	return r
}

func (r *windowCheck) isOpen(m *member) bool {
	if !r.open || r.shut == nil {
		return r.open
	}
	stage := r.stageOf(m)
	return stage == outside || !r.shut[stage]
}

// mayBeShut reports whether a possible stage of the host is shut.
func (r *windowCheck) mayBeShut(m *member) bool {
	for i, shut := range r.shut {
		if shut && m.info != nil && r.selects(i, m) {
			return true
		}
	}
	return false
}

// outside is the stage of hosts that have left the fleet.
const outside = -1

// stageOf returns the stage of a host in the settings. Without a change, it is the first one that selects the host and takes no
// share of its hosts, because each change selects a share anew.
func (r *windowCheck) stageOf(m *member) int {
	switch {
	case m.info == nil:
		return outside
	case m.touched != nil:
		return m.stage % r.ways
	}
	for i := range r.Settings.Stages {
		if percent := r.Settings.Stages[i].Percent; (percent == 0 || percent == 100) && r.selects(i, m) {
			return i
		}
	}
	return r.ways - 1
}

func (r *windowCheck) mayNotJoin(host string) bool {
	if r.shut == nil {
		return false
	}
	_, known := r.Deployed[host]
	return !known && !r.isOpen(&member{host: host, info: r.Hosts[host]})
}

func (r *windowCheck) windowsOf(stage int) []gate.Windows {
	if stage == outside || stage == r.ways-1 {
		return []gate.Windows{r.Settings.Windows}
	}
	return []gate.Windows{r.Settings.Windows, r.Settings.Stages[stage].Windows}
}

func (r *windowCheck) noteWrite(m *member) {
	if r.Settings != nil {
		r.written[r.stageOf(m)] = true
	}
}

func (r *windowCheck) windowed() []gate.Windows {
	var all []gate.Windows
	for stage := outside; stage < r.ways; stage++ {
		if !r.written[stage] {
			continue
		}
		for i, windows := range r.windowsOf(stage) {
			if len(windows) > 0 && (i > 0 || len(all) == 0) {
				all = append(all, windows)
			}
		}
	}
	return all
}

// opening is the first open time after a time; zero: never.
type opening struct{ from, at time.Time }

// opens returns when the windows of the rollout and of a stage are both open; zero if never.
func (r *windowCheck) opens(stage int, from time.Time) time.Time {
	known, ok := r.openings[stage]
	if !ok || from.Before(known.from) || !known.at.IsZero() && from.After(known.at) {
		known = opening{from, gate.Opens(from, r.windowsOf(stage)...)}
		r.openings[stage] = known
	}
	return known.at
}

// earliest returns the earlier time that is not zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// notBefore returns the earliest time to proceed if reports stay the same; zero unless windows or the soak time decide. never: no
// window opens.
func (r *windowCheck) notBefore(t *target, waitsFor Wait, waits *waits) (at time.Time, never bool) {
	switch waitsFor {
	case WaitsForWindow, WaitsForClusters, WaitsForSoak:
	default:
		return at, false
	}
	for stage := range waits.windows {
		at = earliest(at, r.opens(stage, r.Now))
	}
	never = waitsFor == WaitsForWindow
	if soaked := r.soaked(t); !soaked.IsZero() {
		opens := soaked
		if next := t.upcoming(); next != nil {
			opens = r.opens(r.stageOf(next), soaked)
		}
		at, never = earliest(at, opens), true
	}
	return at, never && at.IsZero()
}

// upcoming returns the first host that waits for the soak time.
func (t *target) upcoming() *member {
	var next *member
	for _, m := range t.members {
		if m.touched != nil && m.counts() && m.pending() && !m.done && m.stage >= t.state.Passed && (next == nil || m.stage < next.stage) {
			next = m
		}
	}
	return next
}

// soaked returns when the current stage is proven, or has room for a host, if only the soak time is missing.
func (r *prover) soaked(t *target) time.Time {
	if t.state == nil || t.state.Passed >= len(r.stages) || r.Proposed {
		return time.Time{}
	}
	c, stage := &t.counts, &r.stages[t.state.Passed]
	unknown := c.unknown
	if r.Settings.SkipUnknown {
		unknown = 0
	}
	isGuessed := t.state.Guessed && (stage.ReadyPercent < 100 || c.failed > 0) // then areReady requires more than a share
	if c.waiting+unknown > 0 || isGuessed {
		return time.Time{}
	}
	times, number := c.ends, max(1, ((c.total()-c.failed-c.unknown+unknown)*stage.ReadyPercent+99)/100-c.ready)
	if c.written < c.hosts {
		times, number = c.frees, c.open-stage.MaxConcurrent+1
	}
	if number < 1 || number > len(times) {
		return time.Time{}
	}
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	return times[number-1]
}
