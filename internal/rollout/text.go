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

// MaxRollingOut limits the objects in rolling_out.
const MaxRollingOut = 10

// RollingOut summarizes the progress by deployment target. Beyond [MaxRollingOut], equal ones share the summary of the first, and
// the most urgent remain.
func (o *Outcome) RollingOut() map[string]Summary {
	groups := o.groupProgress(MaxRollingOut)
	slices.SortStableFunc(groups, func(a, b *progressGroup) int {
		switch {
		case a.IsHalted() == b.IsHalted():
			return 0
		case a.IsHalted():
			return -1
		}
		return 1
	})
	byName := make(map[string]Summary, len(groups))
	for _, group := range groups[:min(len(groups), MaxRollingOut)] {
		byName[group.DeploymentTarget] = group.summary()
	}
	return byName
}

// Summary is the progress of deployment targets that are equally far.
type Summary struct {
	Text      string // for people
	Condition Condition
	WaitsFor  Wait
	Approval  string // "" for several deployment targets
	Others    int    // number of further deployment targets
}

func (g *progressGroup) summary() Summary {
	s := Summary{Text: g.text(g.targets), Condition: g.Condition, WaitsFor: g.WaitsFor, Approval: g.Approval(), Others: g.targets - 1}
	if s.Others > 0 {
		s.Text = wording.Count(g.targets, "deployment target", "deployment targets") + ": " + s.Text
	}
	return s
}

// Text returns text such as `stage 1 of 3 "canary", 1 of 7 hosts, since 2026-11-22T01:02:03Z, waits for a window`.
func (p Progress) Text() string { return p.text(1) }

func (p Progress) text(targets int) string {
	var b strings.Builder
	if name := p.Place().text(p.mixed); name != "" {
		b.WriteString(name + ", ")
	}
	fmt.Fprintf(&b, "%d of %s", p.HostsDone, wording.Count(p.Hosts, "host", "hosts"))
	if !p.Since.IsZero() {
		fmt.Fprintf(&b, ", since %s", p.Since.UTC().Format(time.RFC3339))
	}
	switch {
	case p.Condition == RolledBack && p.Stuck:
		b.WriteString(", was stuck and was rolled back")
	case p.Condition == RolledBack:
		b.WriteString(", failed and was rolled back")
	case p.IsHalted():
		b.WriteString(", " + string(p.Condition))
	case targets > 1:
		b.WriteString(", wait for " + p.WaitText())
	default:
		b.WriteString(", waits for " + p.WaitText())
	}
	return b.String()
}

var waitTexts = map[Wait]string{
	WaitsForContent:      "newer content, since this one failed",
	WaitsForApproval:     "an approval",
	WaitsForRequirements: "its requirements",
	WaitsForRequest:      "the open pull request",
	WaitsForWindow:       "a window",
	WaitsForClusters:     "clusters to be ready",
	WaitsForSoak:         "the soak time, since only time counts",
	WaitsForStages:       "the stages before",
	WaitsForHold:         "a hold",
}

// WaitText returns text such as "clusters to be ready".
func (p Progress) WaitText() string {
	if p.WaitsFor == WaitsForContent && p.Stuck {
		return "newer content, since this one is stuck"
	}
	return waitTexts[p.WaitsFor]
}

// text returns text such as `removal stage 1 of 3 "canary"`; "" without a rollout.
func (s StagePlace) text(mixed bool) string {
	text := fmt.Sprintf("stage %d of %d", s.Stage, s.Stages)
	switch {
	case s.Stages == 0:
		return ""
	case mixed && s.Name == "":
		text = "last stage"
	case mixed:
		text = "stage"
	}
	if s.Removes {
		text = "removal " + text
	}
	if s.Name != "" {
		text += " " + strconv.Quote(s.Name)
	}
	return text
}

func (p PassedStage) String() string {
	numbers := []int{p.Failed, p.Stuck, p.NotReady, p.Unknown}
	parts := wording.Counts(numbers, "failed", "stuck", "not ready yet", "unknown")
	return fmt.Sprintf("%s passes %s without %s: %s", p.Approval, p.Stage.text(false),
		wording.Count(p.Failed+p.Stuck+p.NotReady+p.Unknown, "cluster", "clusters"), strings.Join(parts, ", "))
}

// String returns the note in words.
func (n Note) String() string {
	switch n.Kind {
	case NoWayBack:
		return fmt.Sprintf("%s failed, and cannot be rolled back automatically: its content before is not known. %s", n.Subject, n.Other)
	case ApprovesNothing:
		return fmt.Sprintf("approval %q is for a deployment target that has no assignment; remove the approval", n.Subject)
	case ApprovesOld:
		return fmt.Sprintf("approval %q is for content that is not wanted any more; remove the approval", n.Subject)
	case ExpeditesOld:
		return fmt.Sprintf("expedite %q names content that is not wanted; the change under way is %q", n.Subject, n.Other)
	case ExpeditesLater:
		return fmt.Sprintf("expedite %q applies to later content, too; write %q for this content alone", n.Subject, n.Other)
	case ExpeditesNext:
		return fmt.Sprintf("expedite %q applies to the next content, too, which then waits for no stage; remove it once no change needs it",
			n.Subject)
	case TimeProves:
		return fmt.Sprintf("only time proves a change on %s, of which the fleet has no clusters; list them in clusters to have them prove it",
			wording.List(n.Hosts, wording.Named))
	}
	return fmt.Sprintf("stage %q selects no host of the fleet, and is skipped", n.Subject)
}

const maxReason = 300

func (r Reason) text() string {
	text := wording.Cut(wording.Line(r.Message), maxReason)
	if r.Others > 0 {
		text += ", and other figures of " + wording.Count(r.Others, "cluster", "clusters")
	}
	return text
}

// detailText includes the reason only of a failure.
func (p Progress) detailText() string {
	d, c := &p.Detail, &p.Detail.Clusters
	switch p.WaitsFor {
	case WaitsForHold:
		texts := make([]string, len(d.Holds))
		for i, hold := range d.Holds {
			texts[i] = cmp.Or(hold.Reason, "without a reason")
			if !hold.Until.IsZero() {
				texts[i] += ", until " + hold.Until.UTC().Format(time.RFC3339)
			}
		}
		return wording.List(texts, wording.Named)
	case WaitsForClusters:
		if *c == (ClusterCounts{}) {
			return ""
		}
		ready := fmt.Sprintf("%d of %s ready", c.Ready, wording.Count(c.Total, "cluster is", "clusters are"))
		numbers := []int{c.Soaking, c.NotReady, c.Failed + c.Stuck, c.Unknown}
		return strings.Join(append([]string{ready}, wording.Counts(numbers, "soaking", "not ready yet", "failed", "unknown")...), ", ")
	case WaitsForContent:
		return p.failureText()
	case WaitsForApproval:
		return strconv.Quote(p.Approval())
	}
	return ""
}

func (p Progress) failureText() string {
	d, reason := &p.Detail, p.Detail.Reason.text()
	if p.Retry != "" {
		text := fmt.Sprintf("it was rolled back; add %q to approvals to try it again", p.Retry)
		if reason != "" {
			text = reason + "; " + text
		}
		return text
	}
	var parts []string
	if d.Clusters.Failed > 0 {
		parts = append(parts, wording.Count(d.Clusters.Failed, "cluster has", "clusters have")+" failed")
	}
	if d.Clusters.Stuck > 0 {
		parts = append(parts, wording.Count(d.Clusters.Stuck, "cluster is", "clusters are")+" not ready in time")
	}
	text := strings.Join(parts, ", ")
	if at := d.FailedAt.text(false); at != "" {
		text += " at " + at
	}
	if reason != "" {
		text += ": " + reason
	}
	switch {
	case d.NotRolledBack:
		text += "; that is said of no assignment in particular, so it is not rolled back"
	case !d.RollsBackAt.IsZero():
		text += ", and it is rolled back if that lasts until " + d.RollsBackAt.UTC().Format(time.RFC3339)
	}
	return text
}

// progressGroup has the sums of targets that are equally far, and the rest of the first.
type progressGroup struct {
	Progress
	targets int
}

func (g *progressGroup) add(p Progress) {
	if g.targets++; g.Detail.Reason.Message == "" {
		g.Detail.Reason = p.Detail.Reason
	}
	if p.Stage != g.Stage || p.Stages != g.Stages {
		g.mixed = true
	}
	g.Content = ""
	g.addTime(p)
	g.HostsDone, g.Hosts, g.Waiting = g.HostsDone+p.HostsDone, g.Hosts+p.Hosts, g.Waiting+p.Waiting
	if p.Since.Before(g.Since) {
		g.Since = p.Since
	}
}

// addTime keeps the earliest time; none if a time is unknown.
func (g *progressGroup) addTime(p Progress) {
	switch {
	case p.never:
	case g.never:
		g.never, g.NotBefore = false, p.NotBefore
	case g.NotBefore.IsZero() || p.NotBefore.IsZero():
		g.NotBefore = time.Time{}
	default:
		g.NotBefore = earliest(g.NotBefore, p.NotBefore)
	}
}

// groupProgress joins targets with equal progress if there are more than most. Most waiting folders come first.
func (o *Outcome) groupProgress(most int) []*progressGroup {
	type likeness struct {
		isStaged  bool
		number    int
		removes   bool
		waitsFor  Wait
		condition Condition
	}
	groups := map[likeness]*progressGroup{}
	var order []*progressGroup
	for _, p := range o.Progress {
		like := likeness{p.Stages > 0, p.number, p.Removes, p.WaitsFor, p.Condition}
		if group := groups[like]; group != nil && len(o.Progress) > most {
			group.add(p)
			continue
		}
		group := &progressGroup{Progress: p, targets: 1}
		groups[like], order = group, append(order, group)
	}
	if len(o.Progress) > most {
		slices.SortStableFunc(order, func(a, b *progressGroup) int { return cmp.Compare(b.Waiting, a.Waiting) })
	}
	return order
}

// Split separates halted changes from the others.
func (o *Outcome) Split() (failed, others *Outcome) {
	failed, others = &Outcome{}, &Outcome{PassedOver: o.PassedOver}
	for _, p := range o.Progress {
		part := others
		if p.IsHalted() {
			part = failed
		}
		part.Progress = append(part.Progress, p)
	}
	return failed, others
}

const (
	maxLines      = 10
	maxPassedOver = 5
)

// Lines returns the waits and the passed stages: fifteen lines at most.
func (o *Outcome) Lines() []string {
	lines := o.waiting()
	shown := o.PassedOver
	if len(shown) > maxPassedOver {
		shown = shown[:maxPassedOver-1]
	}
	for _, passed := range shown {
		lines = append(lines, passed.String())
	}
	if more := len(o.PassedOver) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more stages are passed without some of their clusters", more))
	}
	return lines
}

func (o *Outcome) waiting() []string {
	var lines []string
	for _, group := range o.groupProgress(maxLines) {
		lines = append(lines, group.line())
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines-1], fmt.Sprintf("and more changes wait, for %d other reasons", len(lines)-maxLines+1))
	}
	return lines
}

func (g *progressGroup) line() string {
	p, name := g.Progress, cmp.Or(g.Approval(), g.DeploymentTarget)
	if g.targets > 1 {
		name = wording.Count(g.targets, "deployment target", "deployment targets")
	}
	where := p.Place().text(p.mixed)
	if where != "" {
		where = " at " + where
	}
	text := fmt.Sprintf("%s%s, on %d of %s: waits for %s", name, where, p.HostsDone, wording.Count(p.Hosts, "host", "hosts"), p.WaitText())
	detail, reason := g.timed(), p.Detail.Reason.text()
	switch {
	case g.targets > 1 && reason != "":
		return text + ", such as: " + reason
	case detail == "":
		return text
	case !p.IsHalted() && p.Detail.Reason.IsMost:
		return strings.TrimSuffix(text, p.WaitText()) + reason + "; " + detail
	case !p.IsHalted() && reason != "":
		return text + ": " + detail + "; " + reason
	}
	return text + ": " + detail
}

func (g *progressGroup) timed() string {
	var parts []string
	if detail := g.detailText(); g.targets == 1 && detail != "" {
		parts = append(parts, detail)
	}
	switch {
	case !g.NotBefore.IsZero():
		parts = append(parts, gate.NotBefore(g.NotBefore))
	case g.never:
		parts = append(parts, "no window opens")
	}
	return strings.Join(parts, ", ")
}
