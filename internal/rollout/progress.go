package rollout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Progress is the progress of the change of one deployment target after a step. Reports alone change neither its exported fields
// nor its JSON: it stays the same until a step decides something.
type Progress struct {
	DeploymentTarget string `json:"-"`
	// Content names the content in approvals, see [Progress.Approval]; "" if no rollout is under way.
	Content string `json:"content,omitempty"`
	// Stage is the position of the current stage among the Stages that have hosts of the change, from 1. Both are 0 if no
	// rollout is under way.
	Stage     int    `json:"stage,omitempty"`
	Stages    int    `json:"stages,omitempty"`
	StageName string `json:"stage_name,omitempty"` // "" for the stage of the hosts that no stage names
	// Removes reports whether Stage and Stages count the stages that remove folders. All other stages are proven.
	Removes   bool      `json:"removes,omitempty"`
	HostsDone int       `json:"hosts_done"`
	Hosts     int       `json:"hosts"`
	Since     time.Time `json:"since,omitzero"` // when the change entered its stage
	WaitsFor  Wait      `json:"waits_for"`
	Condition Condition `json:"state"`

	// Stuck reports whether the content has failed because clusters were not ready in time, rolled back or not.
	Stuck bool `json:"stuck,omitempty"`
	// Retry is the approval that retries content after a rollback; otherwise "".
	Retry string `json:"-"`
	// Waiting is the number of folders that differ from the wanted ones.
	Waiting int `json:"-"`
	// NotBefore is the earliest time at which the change may proceed, if windows and the soak time decide that and
	// clusters keep reporting what they report now; otherwise zero.
	NotBefore time.Time `json:"-"`

	never  bool // windows decide, and none opens
	number int  // the number of the stage in the settings
	mixed  bool // a group of changes that have different numbers of stages
	detail string
	// reason is the most common message of checks about clusters that are not ready or have failed; isMost reports whether no more
	// clusters wait for agents.
	reason string
	isMost bool
}

// Condition is the condition of a change that is under way.
type Condition string

// The conditions.
const (
	Waiting    Condition = "waiting"
	Failed     Condition = "failed"      // it halts
	Stuck      Condition = "stuck"       // it halts because clusters were not ready in time
	RolledBack Condition = "rolled_back" // its hosts went back to the content before
)

// IsHalted reports whether the change waits for newer content, or for its clusters to recover.
func (p Progress) IsHalted() bool { return p.Condition != Waiting }

// waits counts folders by condition.
type waits struct {
	total   int
	by      map[Wait]int
	windows map[int]bool // the stages of folders that wait for a window
}

func (w *waits) add(why Wait) {
	if w.by == nil {
		w.by = map[Wait]int{}
	}
	w.total++
	w.by[why]++
}

func (w *waits) addWindow(stage int) {
	if w.windows == nil {
		w.windows = map[int]bool{}
	}
	w.windows[stage] = true
}

// first returns the condition that must be met first.
func (w *waits) first() Wait {
	for _, why := range waitOrder {
		if w.by[why] > 0 && (why != WaitsForStages || w.by[WaitsForClusters] == 0) {
			if why == WaitsForStages {
				return WaitsForClusters
			}
			return why
		}
	}
	return WaitsForClusters
}

func (r *decider) progressOf(t *target, waits *waits) *Progress {
	p := &Progress{DeploymentTarget: t.name, WaitsFor: waits.first(), Waiting: waits.total, Condition: Waiting}
	for _, m := range t.members {
		if t.state == nil && m.done && !m.wanted || t.state != nil && m.touched == nil { // the next plan does not see it
			continue
		}
		p.Hosts++
		if m.done {
			p.HostsDone++
		}
	}
	if t.state != nil {
		r.underWay(t, p)
	}
	p.detail = r.detail(t, p)
	p.NotBefore, p.never = r.windows.notBefore(t, p.WaitsFor, waits)
	return p
}

// underWay sets the fields of a change that goes through the stages.
func (r *decider) underWay(t *target, p *Progress) {
	s := t.state
	p.Content, p.Since = s.id(), s.Since
	r.setStage(t, p, s.Passed)
	halted := s.Failed || t.failing
	switch {
	case halted:
		p.WaitsFor = WaitsForContent
	case p.WaitsFor != WaitsForClusters:
	case t.counts.hosts == 0 && t.counts.held > 0:
		p.WaitsFor = WaitsForHold
	case r.isTimed(t):
		p.WaitsFor = WaitsForSoak
	}
	p.Stuck = halted && t.isStuck()
	switch {
	case s.Failed:
		p.Condition, p.Retry = RolledBack, gate.Mark(t.name, s.next())
	case p.Stuck:
		p.Condition = Stuck
	case halted:
		p.Condition = Failed
	}
	switch {
	case halted:
		p.reason = t.counts.fails.text()
	case p.WaitsFor == WaitsForClusters:
		p.reason, p.isMost = t.counts.waits.text(), t.counts.waits.isMost()
	}
}

// setStage sets the stage of a number. It does not count stages without hosts of the change.
func (r *stageTable) setStage(t *target, p *Progress, number int) {
	first := slices.IndexFunc(t.stages, func(stage int) bool { return stage >= r.ways })
	if first < 0 {
		first = len(t.stages)
	}
	stages := t.stages[:first]
	if p.Removes = number >= r.ways && first < len(t.stages) || first == 0; p.Removes {
		stages = t.stages[first:]
	}
	p.Stages = len(stages)
	position, _ := slices.BinarySearch(stages, number)
	position = min(position, p.Stages-1)
	p.Stage, p.number = position+1, stages[position]
	p.StageName = r.stages[p.number].Name
}

// isTimed reports whether only time proves the current stage: its hosts have no reports.
func (r *prover) isTimed(t *target) bool {
	some := false
	for _, m := range t.members {
		if m.touched == nil || m.stage != t.state.Passed || !m.counts() || m.touched.Proven {
			continue
		}
		if r.Reports != nil && len(m.info.Clusters) > 0 {
			return false
		}
		some = true
	}
	return some
}

// holds returns the reasons of the holds up to the current stage.
func (r *decider) holds(t *target) string {
	var reasons []string
	for _, m := range t.members {
		if m.hold == nil || !m.pending() || t.state != nil && m.touched != nil && m.stage > t.state.Passed {
			continue
		}
		reason := cmp.Or(m.hold.Reason, "without a reason")
		if !m.hold.Until.IsZero() {
			reason += ", until " + m.hold.Until.UTC().Format(time.RFC3339)
		}
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	return wording.List(reasons, wording.Named)
}

// detail describes the wait. It may change with each report.
func (r *decider) detail(t *target, p *Progress) string {
	switch p.WaitsFor {
	case WaitsForHold:
		return r.holds(t)
	case WaitsForClusters:
		c := t.counts
		if c.total() == 0 {
			return ""
		}
		parts := wording.Counts([]int{c.soaking, c.waiting, c.failed, c.unknown}, "soaking", "not ready yet", "failed", "unknown")
		return strings.Join(
			append([]string{fmt.Sprintf("%d of %s ready", c.ready, wording.Count(c.clusters, "cluster is", "clusters are"))}, parts...),
			", ",
		)
	case WaitsForContent:
		return r.detailOfFailure(t, p)
	case WaitsForApproval:
		return strconv.Quote(p.Approval())
	}
	return ""
}

func (r *decider) detailOfFailure(t *target, p *Progress) string {
	if p.Retry != "" {
		text := fmt.Sprintf("it was rolled back; add %q to approvals to try it again", p.Retry)
		if p.reason != "" {
			text = p.reason + "; " + text
		}
		return text
	}
	c := t.counts
	var parts []string
	if failed := c.failed - c.stuck; failed > 0 {
		parts = append(parts, wording.Count(failed, "cluster has", "clusters have")+" failed")
	}
	if c.stuck > 0 {
		parts = append(parts, wording.Count(c.stuck, "cluster is", "clusters are")+" not ready in time")
	}
	text := strings.Join(parts, ", ")
	if t.failedAt != t.state.Passed {
		text += " at " + r.stageText(t, t.failedAt)
	}
	if p.reason != "" {
		text += ": " + p.reason
	}
	switch {
	case !r.Settings.RollBack || t.lasting || t.expedited:
	case c.lasts.IsZero():
		text += "; that is said of no assignment in particular, so it is not rolled back"
	default:
		text += ", and it is rolled back if that lasts until " + c.lasts.UTC().Format(time.RFC3339)
	}
	return text
}

// Approval is the text that approves the content, `<deployment target>@<content>`; "" if no rollout is under way.
func (p Progress) Approval() string {
	if p.Content == "" {
		return ""
	}
	return gate.Mark(p.DeploymentTarget, p.Content)
}

// MarshalProgress returns the JSON object of the progress of deployment targets by name. [ParseProgress] reads it.
func MarshalProgress(all []Progress) string {
	byName := make(map[string]Progress, len(all))
	for _, p := range all {
		p.Since = p.Since.UTC().Truncate(time.Second)
		byName[p.DeploymentTarget] = p
	}
	text, _ := json.Marshal(byName) // never fails: every field has a JSON form
	return string(text)
}

// ParseProgress reads the text of [MarshalProgress], ordered by deployment target. Text of any other form is an error.
func ParseProgress(text string) ([]Progress, error) {
	var byName map[string]*Progress
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&byName); err != nil || byName == nil || decoder.More() {
		return nil, errors.New("it is no JSON object of rollouts")
	}
	all := make([]Progress, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		p := byName[name]
		if p == nil || !p.isValid() {
			return nil, fmt.Errorf("it has no progress of a rollout under %q", name)
		}
		p.DeploymentTarget = name
		all = append(all, *p)
	}
	return all, nil
}

// isValid reports whether a step can have made the progress.
func (p *Progress) isValid() bool {
	return slices.Contains(waitOrder, p.WaitsFor) && slices.Contains([]Condition{Waiting, Failed, Stuck, RolledBack}, p.Condition) &&
		0 <= p.HostsDone && p.HostsDone <= p.Hosts && 0 <= p.Stage && p.Stage <= p.Stages && (p.Stages == 0) == (p.Content == "")
}
