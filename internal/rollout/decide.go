package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// decider decides about folders, and sets the progress of targets.
type decider struct {
	*prover
	state   *StepState
	windows *windowCheck
	targets map[string]*target
	order   []string
	out     *Outcome
}

func (r *decider) decide(t *target) {
	if t.undecided {
		for _, m := range t.members {
			if m.wanted || m.deployed {
				r.put(m, Decision{Action: Write})
			}
		}
		return
	}
	var waits waits
	back := !t.expedited && t.lasting && r.Settings.RollBack || t.state != nil && t.state.Failed
	if back {
		back = r.rollBack(t, &waits)
	}
	room := r.room(t)
	for _, m := range t.members {
		switch {
		case back && m.touched != nil && m.counts():
		case !m.pending():
			r.keepWanted(m)
		default:
			why := r.waits(t, m, &room)
			if why == "" {
				r.write(t, m)
				continue
			}
			if waits.add(why); why == WaitsForWindow {
				waits.addWindow(r.windows.stageOf(m))
			}
			r.keep(m)
		}
	}
	r.conclude(t, &waits)
}

// keepWanted repairs changes by hand, unless a window is closed.
func (r *decider) keepWanted(m *member) {
	switch {
	case !m.wanted:
	case m.hold == nil && r.windows.isOpen(m):
		if r.Found != nil && r.Found[m.host][m.key.DeploymentTarget] != m.want {
			r.windows.noteWrite(m)
		}
		r.put(m, Decision{Action: Write, Tree: m.want})
	default:
		r.put(m, Decision{Action: Keep})
	}
}

func (r *decider) keep(m *member) {
	if m.deployed {
		r.put(m, Decision{Action: Keep})
	}
}

func (r *decider) write(t *target, m *member) {
	t.writes++
	m.done = true
	if !t.expedited {
		r.windows.noteWrite(m)
	}
	if m.wanted {
		r.put(m, Decision{Action: Write, Tree: m.want})
	} else if m.touched != nil {
		m.touched.Gone = r.Now
	}
	if m.touched != nil && t.state.Passed > m.stage {
		m.touched.Proven = true // it joins the released hosts
	}
}

// room returns how many further hosts of the stage may be under way; negative for any number.
func (r *decider) room(t *target) int {
	if t.state == nil || t.state.Passed >= len(r.stages) {
		return -1
	}
	most := r.stages[t.state.Passed].MaxConcurrent
	if most == 0 {
		return -1
	}
	return max(0, most-t.counts.open)
}

// Wait is a condition for the change of a folder.
type Wait string

// The conditions of a wait.
const (
	WaitsForContent      Wait = "newer_content" // the present content has failed
	WaitsForApproval     Wait = "approval"
	WaitsForRequirements Wait = "requirements"
	WaitsForRequest      Wait = "pull_request"
	WaitsForWindow       Wait = "window"
	WaitsForClusters     Wait = "clusters"
	WaitsForSoak         Wait = "soak" // only time counts
	WaitsForStages       Wait = "stages"
	WaitsForHold         Wait = "hold"
)

// waitOrder has all conditions in order: the first must be met first.
var waitOrder = []Wait{
	WaitsForContent, WaitsForApproval, WaitsForRequirements, WaitsForRequest, WaitsForWindow, WaitsForClusters, WaitsForSoak, WaitsForStages,
	WaitsForHold,
}

// waits returns "" if a folder is written now.
func (r *decider) waits(t *target, m *member, room *int) Wait {
	switch {
	case m.hold != nil:
		return WaitsForHold
	case t.state != nil && !t.expedited && m.touched != nil:
		if why := r.waitsInRollout(t, m, room); why != "" {
			return why
		}
	case t.released && m.wanted && !r.areProven(m):
		return WaitsForRequirements
	case !t.expedited && !r.windows.isOpen(m):
		return WaitsForWindow
	}
	return ""
}

func (r *decider) waitsInRollout(t *target, m *member, room *int) Wait {
	s := t.state
	switch {
	case s.Failed || t.failing:
		return WaitsForContent
	case m.stage > s.Passed:
		return WaitsForStages
	case m.stage == s.Passed && r.stages[m.stage].Approval && !r.Settings.Approvals.For(t.name, s.id()):
		return WaitsForApproval
	case m.wanted && !r.areProven(m):
		return WaitsForRequirements
	case r.Proposed && r.isInRequest(t):
		return WaitsForRequest
	case !r.windows.isOpen(m):
		return WaitsForWindow
	case m.stage == s.Passed && *room == 0:
		return WaitsForClusters
	}
	if m.stage == s.Passed && *room > 0 {
		*room--
	}
	return ""
}

// isStuck reports whether all failed clusters were only not ready in time.
func (t *target) isStuck() bool { return t.failing && t.stuck || t.state.Stuck }

func (r *decider) isInRequest(t *target) bool {
	return slices.ContainsFunc(t.members, func(m *member) bool {
		return m.touched != nil && m.counts() && !m.pending() && !m.touched.Proven
	})
}

func (r *decider) areProven(m *member) bool {
	return r.Requires == nil || !slices.ContainsFunc(r.Requires(m.key), func(key folder.Key) bool { return !r.proves(key) })
}

// rollBack returns hosts to their content before. If that is unknown, it returns false, and the rollout halts.
func (r *decider) rollBack(t *target, waits *waits) bool {
	for _, m := range t.members {
		if m.touched == nil || !m.counts() || t.state.Failed && m.pending() {
			continue // it is rolled back already, or never had the content
		}
		if !m.pending() && r.Back[m.touched.From] == nil {
			if m.touched.From == "" {
				r.out.Notes = append(r.out.Notes, Note{
					Kind: NoWayBack, Subject: gate.Mark(t.name, t.state.id()), Other: cmp.Or(r.Remedy, "Set rollback_to, or write newer content"),
				})
			} else {
				r.out.Missing = append(r.out.Missing, m.touched.From)
			}
			return false
		}
	}
	t.state.Failed, t.state.Stuck, t.failing = true, t.failing && t.stuck || t.state.Stuck, false
	for _, m := range t.members {
		if m.touched == nil {
			continue
		}
		if m.touched.Proven = false; !m.counts() {
			continue
		}
		waits.add(WaitsForContent)
		if m.pending() {
			r.keep(m)
			continue
		}
		t.writes++
		tree, was := r.Back[m.touched.From][m.host][t.name]
		switch {
		case was && m.deployed && tree == m.have:
			r.put(m, Decision{Action: Keep})
		case was:
			r.put(m, Decision{Action: RollBack, Tree: tree, From: m.touched.From})
		}
		m.done = false
	}
	r.assignStages(t) // as all later plans do
	return true
}

// conclude removes a complete change, and sets the progress of any other.
func (r *decider) conclude(t *target, waits *waits) {
	s := t.state
	if s != nil && !s.Failed && !t.failing && waits.total == 0 && s.Passed >= len(r.stages) {
		delete(r.state.Targets, t.name)
		return
	}
	if s == nil && waits.total == 0 {
		return
	}
	t.progress = r.progressOf(t, waits)
}

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
