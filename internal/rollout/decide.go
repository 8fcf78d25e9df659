package rollout

import (
	"cmp"
	"slices"

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
