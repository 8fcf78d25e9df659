package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Progress is how far the change of one deployment target is after a step. It has nothing that changes with
// reports alone, so that it stays the same until something is decided.
type Progress struct {
	DeploymentTarget string
	// Content is what of the target is approved, see [Progress.Approval]; "" where no rollout is under way.
	Content   string
	Stage, Of int    // from 1
	Name      string // of the stage; "" for that of the hosts that no stage names
	// Removes says that what was written is proven in all stages, and that the stage is one of what is removed.
	Removes     bool
	Done, Hosts int
	Since       time.Time // when it got to its stage
	WaitsFor    string
	// Failed says that it halts, or was rolled back, until something changes.
	Failed bool
	// Stuck says that it halts since it is not ready in time.
	Stuck bool
	// WentBack says that it failed, or was stuck, and was rolled back.
	WentBack bool
	// Retry is the approval with which it is tried again; "" where nothing was rolled back.
	Retry string
	// Waiting is how many folders are not as they are wanted.
	Waiting int
	// NotBefore is the earliest time at which something of it may go on, as far as windows and the soak time decide that, and
	// as long as clusters say what they say now; else zero.
	NotBefore time.Time
	never     bool // they decide, and no window opens
	detail    string
	// reason is the most common one why clusters are waited for, or failed, where others than agents say so; isMost says that
	// it is what is waited for.
	reason string
	isMost bool
}

// waits counts folders by what they wait for.
type waits struct {
	total   int
	by      map[string]int
	windows map[int]bool // the stages of those that wait for a window
}

func (w *waits) add(why string) {
	if w.by == nil {
		w.by = map[string]int{}
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

// first is what has to be done first.
func (w *waits) first() string {
	for _, why := range whatIsWaitedFor {
		if w.by[why] > 0 && (why != waitsForStage || w.by[waitsForReady] == 0) {
			if why == waitsForStage {
				return waitsForReady
			}
			return why
		}
	}
	return waitsForReady
}

func (r *run) progressOf(t *target, waits *waits) *Progress {
	p := &Progress{DeploymentTarget: t.name, WaitsFor: waits.first(), Waiting: waits.total}
	for _, m := range t.members {
		if t.state == nil && m.done && !m.wanted || t.state != nil && m.touched == nil { // the next plan does not see it
			continue
		}
		p.Hosts++
		if m.done {
			p.Done++
		}
	}
	if t.state != nil {
		r.underWay(t, p)
	}
	p.detail = r.detail(t, p)
	p.NotBefore, p.never = r.notBefore(t, p.WaitsFor, waits)
	return p
}

// underWay fills in the progress of a change that goes through the stages.
func (r *run) underWay(t *target, p *Progress) {
	s := t.state
	p.Content, p.Since, p.Of = s.id(), s.Since, r.ways
	p.Stage = min(s.Passed+1, p.Of)
	if p.Removes = t.removes && s.Passed >= r.ways; p.Removes {
		p.Stage = min(s.Passed-r.ways+1, p.Of)
	}
	p.Name = r.stages[p.Stage-1].Name
	switch p.Failed = s.Failed || t.failing; {
	case p.Failed:
		p.WaitsFor = t.waitsForNewer()
		p.Stuck = p.WaitsFor == waitsForProgress
	case p.WaitsFor != waitsForReady:
	case t.counts.hosts == 0 && t.counts.held > 0:
		p.WaitsFor = waitsForHold
	case r.isTimed(t):
		p.WaitsFor = waitsForTime
	}
	if s.Failed {
		p.WentBack, p.Retry = true, gate.Mark(t.name, s.next())
	}
	switch {
	case p.Failed:
		p.reason = t.counts.fails.text()
	case p.WaitsFor == waitsForReady:
		p.reason, p.isMost = t.counts.waits.text(), t.counts.waits.isMost()
	}
}

// isTimed says whether only time proves the stage that a change is at: no cluster reports of any of its hosts.
func (r *run) isTimed(t *target) bool {
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

// holds are the reasons of the holds that keep hosts of the stage that a change is at, of those before, or any where it has no stages.
func (r *run) holds(t *target) string {
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

// detail says more of what is waited for. It may change with each report.
func (r *run) detail(t *target, p *Progress) string {
	switch p.WaitsFor {
	case waitsForHold:
		return r.holds(t)
	case waitsForReady:
		c := t.counts
		if c.total() == 0 {
			return ""
		}
		parts := wording.Counts([]int{c.soaking, c.waiting, c.failed, c.unknown}, "soaking", "not ready yet", "failed", "unknown")
		return strings.Join(
			append([]string{fmt.Sprintf("%d of %s ready", c.ready, wording.Count(c.clusters, "cluster is", "clusters are"))}, parts...),
			", ",
		)
	case waitsForFix, waitsForProgress:
		return r.detailOfFailure(t, p)
	case waitsForApproval:
		return strconv.Quote(p.Approval())
	}
	return ""
}

func (r *run) detailOfFailure(t *target, p *Progress) string {
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
		text += " at " + r.stageName(t.failedAt)
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

// Approval is what is approved, as `<deployment target>@<content>`; "" where no rollout is under way.
func (p Progress) Approval() string {
	if p.Content == "" {
		return ""
	}
	return gate.Mark(p.DeploymentTarget, p.Content)
}

// String is what `rolling_out` says of the target.
func (p Progress) String() string {
	var b strings.Builder
	if p.Of > 0 {
		b.WriteString(p.stageName() + ", ")
	}
	fmt.Fprintf(&b, "%d of %s", p.Done, wording.Count(p.Hosts, "host", "hosts"))
	if !p.Since.IsZero() {
		fmt.Fprintf(&b, ", since %s", p.Since.UTC().Format(time.RFC3339))
	}
	b.WriteString(", " + p.ending())
	if approval := p.Approval(); approval != "" {
		b.WriteString(" (" + approval + ")")
	}
	return b.String()
}

// ending is what `rolling_out` says last, before the content.
func (p Progress) ending() string {
	switch {
	case p.WentBack && p.Stuck:
		return "was stuck and was rolled back"
	case p.WentBack:
		return "failed and was rolled back"
	case p.Stuck:
		return "stuck"
	case p.Failed:
		return "failed"
	}
	return "waits for " + p.WaitsFor
}

// stageName is such as `stage 1 of 3 "canary"`, or `removal stage 1 of 3 "canary"`.
func (p Progress) stageName() string {
	name := fmt.Sprintf("stage %d of %d", p.Stage, p.Of)
	if p.Removes {
		name = removalOf + name
	}
	if p.Name != "" {
		name += " " + strconv.Quote(p.Name)
	}
	return name
}

// removalOf comes before the name of a stage in which folders are removed.
const removalOf = "removal "

// stageName names a stage by its number.
func (r *run) stageName(number int) string {
	return Progress{Stage: number%r.ways + 1, Of: r.ways, Name: r.stages[number].Name, Removes: number >= r.ways}.stageName()
}
