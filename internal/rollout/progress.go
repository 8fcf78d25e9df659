package rollout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

// Progress is the progress of the change of one deployment target. Reports alone change none of its fields but Detail and
// NotBefore.
type Progress struct {
	DeploymentTarget string `json:"-"`
	// Content names the content in approvals; "" without a rollout.
	Content string `json:"content,omitempty"`
	// Stage is the position of the current stage, from 1, among the Stages with hosts of the change. Both are 0 without a
	// rollout.
	Stage     int    `json:"stage,omitempty"`
	Stages    int    `json:"stages,omitempty"`
	StageName string `json:"stage_name,omitempty"` // "" for the stage of the hosts that no stage names
	// Removes reports whether these stages remove folders, after all others are proven.
	Removes   bool      `json:"removes,omitempty"`
	HostsDone int       `json:"hosts_done"`
	Hosts     int       `json:"hosts"`
	Since     time.Time `json:"since,omitzero"` // when the change entered its stage
	WaitsFor  Wait      `json:"waits_for"`
	Condition Condition `json:"state"`

	// Stuck reports whether clusters were not ready in time.
	Stuck bool `json:"stuck,omitempty"`
	// Retry is the approval that retries content after a rollback.
	Retry string `json:"-"`
	// Waiting counts the folders that differ from the wanted ones.
	Waiting int `json:"-"`
	// NotBefore is the earliest time to proceed, if windows or the soak time decide and reports stay the same; otherwise zero.
	NotBefore time.Time `json:"-"`

	Detail Detail `json:"-"`

	never  bool // windows decide, and none opens
	number int  // the number of the stage in the settings
	mixed  bool // a group of changes that have different numbers of stages
}

// Detail describes a wait. It changes with reports and is in no state.
type Detail struct {
	// Clusters counts the clusters of the stage, or the failed ones.
	Clusters ClusterCounts
	Reason   Reason
	Holds    []HoldDetail
	// FailedAt is the stage of the failure, unless it is the current one.
	FailedAt StagePlace
	// RollsBackAt is the time until which a failure must last; zero if it is not rolled back.
	RollsBackAt time.Time
	// NotRolledBack reports that the failure is of no assignment in particular.
	NotRolledBack bool
}

// ClusterCounts counts clusters. Total includes those without a report.
type ClusterCounts struct{ Total, Ready, Soaking, NotReady, Failed, Stuck, Unknown int }

// Reason is the most common message of checks.
type Reason struct {
	Message string // "" without checks
	Others  int    // clusters with other messages of the check
	IsMost  bool   // no more clusters wait for agents
}

// HoldDetail is the reason of a hold, and its end.
type HoldDetail struct {
	Reason string
	Until  time.Time // zero: until it is removed
}

// StagePlace is the position of a stage, as in [Progress].
type StagePlace struct {
	Stage, Stages int
	Name          string
	Removes       bool
}

// Place returns the current stage.
func (p Progress) Place() StagePlace { return StagePlace{p.Stage, p.Stages, p.StageName, p.Removes} }

// Condition is the condition of a change under way.
type Condition string

// The conditions.
const (
	Waiting    Condition = "waiting"
	Failed     Condition = "failed"      // it halts
	Stuck      Condition = "stuck"       // it halts because clusters were not ready in time
	RolledBack Condition = "rolled_back" // its hosts went back to the content before
)

// IsHalted reports whether the change waits for newer content, or for clusters to recover.
func (p Progress) IsHalted() bool { return p.Condition != Waiting }

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
		r.describeRollout(t, p)
	}
	r.setDetail(t, p)
	p.NotBefore, p.never = r.windows.notBefore(t, p.WaitsFor, waits)
	return p
}

func (r *decider) describeRollout(t *target, p *Progress) {
	s := t.state
	p.Content, p.Since = s.id(), s.Since
	place := r.placeOf(t, s.Passed)
	p.Stage, p.Stages, p.StageName, p.Removes = place.Stage, place.Stages, place.Name, place.Removes
	p.number, _ = r.stageAt(t, s.Passed)
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
}

func (r *stageTable) placeOf(t *target, number int) StagePlace {
	at, stages := r.stageAt(t, number)
	position, _ := slices.BinarySearch(stages, at)
	return StagePlace{Stage: position + 1, Stages: len(stages), Name: r.stages[at].Name, Removes: at >= r.ways}
}

// stageAt returns the first stage with hosts of the change from a number on, or the last one; and all stages of its kind: writes or
// removals.
func (r *stageTable) stageAt(t *target, number int) (stage int, all []int) {
	first := slices.IndexFunc(t.stages, func(stage int) bool { return stage >= r.ways })
	if first < 0 {
		first = len(t.stages)
	}
	all = t.stages[:first]
	if number >= r.ways && first < len(t.stages) || first == 0 {
		all = t.stages[first:]
	}
	position, _ := slices.BinarySearch(all, number)
	return all[min(position, len(all)-1)], all
}

// isTimed reports whether the hosts of the current stage have no reports.
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

func (r *decider) holds(t *target) []HoldDetail {
	var holds []HoldDetail
	for _, m := range t.members {
		if m.hold != nil && m.pending() && (t.state == nil || m.touched == nil || m.stage <= t.state.Passed) {
			holds = append(holds, HoldDetail{m.hold.Reason, m.hold.Until})
		}
	}
	slices.SortFunc(holds, func(a, b HoldDetail) int {
		return cmp.Or(strings.Compare(a.Reason, b.Reason), a.Until.Compare(b.Until))
	})
	return slices.CompactFunc(holds, func(a, b HoldDetail) bool { return a.Reason == b.Reason && a.Until.Equal(b.Until) })
}

func (r *decider) setDetail(t *target, p *Progress) {
	c, d := &t.counts, &p.Detail
	switch p.WaitsFor {
	case WaitsForHold:
		d.Holds = r.holds(t)
	case WaitsForClusters:
		if d.Reason = c.waits.most(); c.total() > 0 {
			d.Clusters = c.shown()
		}
	case WaitsForContent:
		d.Reason = c.fails.most()
		if p.Retry != "" {
			return
		}
		d.Clusters = c.shown()
		if t.failedAt != t.state.Passed {
			d.FailedAt = r.placeOf(t, t.failedAt)
		}
		if r.Settings.RollBack && !t.lasting && !t.expedited {
			d.RollsBackAt, d.NotRolledBack = c.lasts, c.lasts.IsZero()
		}
	}
}

func (c *counts) shown() ClusterCounts {
	return ClusterCounts{
		Total: c.clusters, Ready: c.ready, Soaking: c.soaking, NotReady: c.waiting,
		Failed: c.failed - c.stuck, Stuck: c.stuck, Unknown: c.unknown,
	}
}

// Approval returns `<deployment target>@<content>`; "" without a rollout.
func (p Progress) Approval() string {
	if p.Content == "" {
		return ""
	}
	return gate.Mark(p.DeploymentTarget, p.Content)
}

// MarshalProgress returns a JSON object by deployment target.
func MarshalProgress(all []Progress) string {
	byName := make(map[string]Progress, len(all))
	for _, p := range all {
		p.Since = p.Since.UTC().Truncate(time.Second)
		byName[p.DeploymentTarget] = p
	}
	text, _ := json.Marshal(byName) // never fails: every field has a JSON form
	return string(text)
}

// ParseProgress reads the text of [MarshalProgress], ordered by deployment target. Any other text is an error.
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

func (p *Progress) isValid() bool {
	return slices.Contains(waitOrder, p.WaitsFor) && slices.Contains([]Condition{Waiting, Failed, Stuck, RolledBack}, p.Condition) &&
		0 <= p.HostsDone && p.HostsDone <= p.Hosts && 0 <= p.Stage && p.Stage <= p.Stages && (p.Stages == 0) == (p.Content == "")
}
