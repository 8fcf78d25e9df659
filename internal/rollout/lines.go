package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// MaxRollingOut is the maximum number of objects in the attribute rolling_out.
const MaxRollingOut = 10

// RollingOut summarizes the progress by deployment target. If more than [MaxRollingOut] are under way, targets that are equally
// far share the summary of the first of them, and only the most urgent summaries remain.
func (o *Outcome) RollingOut() map[string]Summary {
	groups := make([]*progressGroup, 0, len(o.Progress))
	if len(o.Progress) <= MaxRollingOut {
		for _, p := range o.Progress {
			groups = append(groups, &progressGroup{Progress: p, targets: 1})
		}
	} else {
		groups = o.groups()
		slices.SortStableFunc(groups, func(a, b *progressGroup) int { return compareBool(b.IsHalted(), a.IsHalted()) })
	}
	byName := make(map[string]Summary, len(groups))
	for _, group := range groups[:min(len(groups), MaxRollingOut)] {
		byName[group.DeploymentTarget] = group.summary()
	}
	return byName
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Summary is the short progress of a deployment target, or of several that are equally far.
type Summary struct {
	Text      string // for people
	Condition Condition
	WaitsFor  Wait
	Approval  string // see [Progress.Approval]; "" for several deployment targets
	Others    int    // number of further deployment targets
}

func (g *progressGroup) summary() Summary {
	s := Summary{Text: g.text(g.targets), Condition: g.Condition, WaitsFor: g.WaitsFor, Approval: g.Approval(), Others: g.targets - 1}
	if s.Others > 0 {
		s.Text = wording.Count(g.targets, "deployment target", "deployment targets") + ": " + s.Text
	}
	return s
}

// Text returns the progress in words, such as `stage 1 of 3 "canary", 1 of 7 hosts, since 2026-11-22T01:02:03Z, waits for a
// window`.
func (p Progress) Text() string { return p.text(1) }

func (p Progress) text(targets int) string {
	var b strings.Builder
	if name := p.stageText(); name != "" {
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

// waitTexts has the words for each condition.
var waitTexts = map[Wait]string{
	WaitsForContent:      "newer content, since this one failed",
	WaitsForApproval:     "an approval",
	WaitsForRequirements: "what it requires",
	WaitsForRequest:      "the open pull request",
	WaitsForWindow:       "a window",
	WaitsForClusters:     "clusters to be ready",
	WaitsForSoak:         "the soak time, since only time counts",
	WaitsForStages:       "the stages before",
	WaitsForHold:         "a hold",
}

// WaitText returns the condition in words, such as "clusters to be ready".
func (p Progress) WaitText() string {
	if p.WaitsFor == WaitsForContent && p.Stuck {
		return "newer content, since this one is stuck"
	}
	return waitTexts[p.WaitsFor]
}

// stageText returns the stage in words, such as `stage 1 of 3 "canary"` or `removal stage 1 of 3 "canary"`; "" without a rollout.
func (p Progress) stageText() string {
	text := fmt.Sprintf("stage %d of %d", p.Stage, p.Stages)
	switch {
	case p.Stages == 0:
		return ""
	case p.mixed && p.StageName == "":
		text = "last stage"
	case p.mixed:
		text = "stage"
	}
	if p.Removes {
		text = "removal " + text
	}
	if p.StageName != "" {
		text += " " + strconv.Quote(p.StageName)
	}
	return text
}

// stageText returns the stage with a number in words.
func (r *stageTable) stageText(t *target, number int) string {
	var p Progress
	r.setStage(t, &p, number)
	return p.stageText()
}

// progressGroup has the progress of the first of several targets that are equally far, and the sums of all.
type progressGroup struct {
	Progress
	targets int
}

// add adds a target that is equally far.
func (g *progressGroup) add(p Progress) {
	if g.targets++; g.reason == "" {
		g.reason = p.reason
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

// groups groups the targets with the same condition at the same stage, most folders first.
func (o *Outcome) groups() []*progressGroup {
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
		if group := groups[like]; group != nil {
			group.add(p)
			continue
		}
		group := &progressGroup{Progress: p, targets: 1}
		groups[like], order = group, append(order, group)
	}
	slices.SortStableFunc(order, func(a, b *progressGroup) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return order
}

// HasMore reports whether Lines has figures or times that change with the evidence and are in no state.
func (o *Outcome) HasMore() bool {
	return slices.ContainsFunc(o.Progress, func(p Progress) bool { return p.reason != "" || p.never || !p.NotBefore.IsZero() })
}

// Split separates failed changes, rolled back or not, from the others.
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

// maxLines and maxPassedOver limit the lines about waits and about passed stages.
const (
	maxLines      = 10
	maxPassedOver = 5
)

// Lines returns the waits, and the stages that pass without some of their clusters, in words: fifteen lines at most.
func (o *Outcome) Lines() []string {
	lines, passed := o.waiting(), o.PassedOver
	if len(passed) > maxPassedOver {
		passed = append(
			slices.Clone(passed[:maxPassedOver-1]),
			fmt.Sprintf("and %d more stages are passed without some of their clusters", len(passed)-maxPassedOver+1),
		)
	}
	return append(lines, passed...)
}

func (o *Outcome) waiting() []string {
	var lines []string
	if len(o.Progress) <= maxLines {
		for _, p := range o.Progress {
			lines = append(lines, p.line(1))
		}
		return lines
	}
	for _, group := range o.groups() {
		lines = append(lines, group.line(group.targets))
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines-1], fmt.Sprintf("and more changes wait, for %d other reasons", len(lines)-maxLines+1))
	}
	return lines
}

func (p Progress) line(targets int) string {
	name := cmp.Or(p.Approval(), p.DeploymentTarget)
	if targets > 1 {
		name = wording.Count(targets, "deployment target", "deployment targets")
	}
	where := p.stageText()
	if where != "" {
		where = " at " + where
	}
	text := fmt.Sprintf("%s%s, on %d of %s: waits for %s", name, where, p.HostsDone, wording.Count(p.Hosts, "host", "hosts"), p.WaitText())
	detail := p.timed(targets)
	switch {
	case targets > 1 && p.reason != "":
		return text + ", such as: " + p.reason
	case detail == "":
		return text
	case p.isMost:
		return strings.TrimSuffix(text, p.WaitText()) + p.reason + "; " + detail
	case !p.IsHalted() && p.reason != "":
		return text + ": " + detail + "; " + p.reason
	}
	return text + ": " + detail
}

// timed returns the detail of a single target, and the earliest time to proceed.
func (p Progress) timed(targets int) string {
	var parts []string
	if targets == 1 && p.detail != "" {
		parts = append(parts, p.detail)
	}
	switch {
	case !p.NotBefore.IsZero():
		parts = append(parts, gate.NotBefore(p.NotBefore))
	case p.never:
		parts = append(parts, "no window opens")
	}
	return strings.Join(parts, ", ")
}

// notes returns warnings about the settings.
func (r *run) notes() []string {
	notes := r.out.Notes
	slices.Sort(notes)
	notes = slices.Compact(notes)
	for _, approval := range r.Settings.Approvals {
		name, content, _ := strings.Cut(approval, "@")
		t := r.targets[name]
		switch {
		case t == nil:
			notes = append(notes, fmt.Sprintf("approval %q is for a deployment target that has no assignment; remove the approval", approval))
		case !t.hasContent(content):
			notes = append(notes, fmt.Sprintf("approval %q is for content that is not wanted any more; remove the approval", approval))
		}
	}
	for _, text := range r.Settings.Expedite {
		name, content, isContent := strings.Cut(text, "@")
		if t := r.targets[name]; isContent && t != nil && t.state != nil && content != t.state.id() {
			notes = append(
				notes,
				fmt.Sprintf("expedite %q is for content that is not wanted; what is on its way is %q", text, gate.Mark(name, t.state.id())),
			)
		} else if t := r.targets[text]; t != nil && t.state != nil {
			notes = append(notes, fmt.Sprintf("expedite %q is for whatever that gets later, too; write %q for this "+
				"content alone", text, gate.Mark(text, t.state.id())))
		} else if !strings.Contains(text, "@") {
			notes = append(notes, fmt.Sprintf("expedite %q is for whatever that gets next, too: it waits for no stage; remove it once nothing is "+
				"to be expedited", text))
		}
	}
	if hosts := r.withoutClusters(); len(hosts) > 0 {
		notes = append(
			notes,
			fmt.Sprintf("only time proves a change on %s, of which the fleet has no clusters; list them in clusters to have them prove it",
				wording.List(hosts, wording.Named)),
		)
	}
	for i := range r.Settings.Stages {
		if stage := &r.Settings.Stages[i]; stage.selects() && !r.isAnyIn(stage) {
			notes = append(notes, fmt.Sprintf("stage %q selects no host of the fleet, and is skipped", stage.Name))
		}
	}
	return notes
}

// withoutClusters returns the hosts of changes under way without clusters, if other hosts report.
func (r *run) withoutClusters() []string {
	if r.Reports == nil {
		return nil
	}
	found := map[string]bool{}
	for _, t := range r.targets {
		if t.state == nil {
			continue
		}
		for _, m := range t.members {
			if m.touched != nil && m.counts() && len(m.info.Clusters) == 0 {
				found[m.host] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func (r *run) isAnyIn(stage *Stage) bool {
	for name, host := range r.Hosts {
		if stage.matches(name, host) {
			return true
		}
	}
	return false
}
