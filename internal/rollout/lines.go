package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// RollingOut says by deployment target how far it is.
func (o *Outcome) RollingOut() map[string]string {
	said := make(map[string]string, len(o.Progress))
	for _, p := range o.Progress {
		said[p.DeploymentTarget] = p.String()
	}
	return said
}

// progressGroup is deployment targets that are equally far: the first of them, with the hosts of all.
type progressGroup struct {
	Progress
	targets int
}

// addTime keeps the earliest time of all; none where that of some is not known.
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

// groups puts together what waits for the same at the same stage, the most folders first.
func (o *Outcome) groups() []*progressGroup {
	type likeness struct {
		stage, of int
		removes   bool
		waitsFor  string
		failed    bool
		retried   bool
	}
	groups := map[likeness]*progressGroup{}
	var order []*progressGroup
	for _, p := range o.Progress {
		like := likeness{p.Stage, p.Of, p.Removes, p.WaitsFor, p.Failed, p.WentBack}
		group := groups[like]
		if group == nil {
			group = &progressGroup{Progress: p, targets: 1}
			groups[like], order = group, append(order, group)
			continue
		}
		if group.targets == 1 {
			group.Content = ""
		}
		group.targets++
		if group.reason == "" {
			group.reason = p.reason
		}
		group.addTime(p)
		group.Done, group.Hosts, group.Waiting = group.Done+p.Done, group.Hosts+p.Hosts, group.Waiting+p.Waiting
		if p.Since.Before(group.Since) {
			group.Since = p.Since
		}
	}
	slices.SortStableFunc(order, func(a, b *progressGroup) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return order
}

// HasMore says whether lines have what may be another with each evidence, and no state has: figures, and the earliest times.
func (o *Outcome) HasMore() bool {
	return slices.ContainsFunc(o.Progress, func(p Progress) bool { return p.reason != "" || p.never || !p.NotBefore.IsZero() })
}

// Split parts what has failed, rolled back or not, from all else.
func (o *Outcome) Split() (failed, others *Outcome) {
	failed, others = &Outcome{}, &Outcome{PassedOver: o.PassedOver}
	for _, p := range o.Progress {
		part := others
		if p.Failed {
			part = failed
		}
		part.Progress = append(part.Progress, p)
	}
	return failed, others
}

// maxLines bounds what Lines returns of what waits, and maxPassedOver what it returns of what was passed over.
const (
	maxLines      = 10
	maxPassedOver = 5
)

// Lines say for people what waits, and for what, and which stages are passed without some of their clusters. They are
// never more than fifteen.
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
	where := ""
	if p.Of > 0 {
		where = " at " + p.stageName()
	}
	text := fmt.Sprintf("%s%s, on %d of %s: waits for ", name, where, p.Done, wording.Count(p.Hosts, "host", "hosts"))
	detail := p.timed(targets)
	switch {
	case targets > 1 && p.reason != "":
		return text + p.WaitsFor + ", such as: " + p.reason
	case detail == "":
		return text + p.WaitsFor
	case p.isMost:
		return text + p.reason + "; " + detail
	case !p.Failed && p.reason != "":
		return text + p.WaitsFor + ": " + detail + "; " + p.reason
	}
	return text + p.WaitsFor + ": " + detail
}

// timed is the detail of one target, or of none where there are several, with the earliest time at which something goes on.
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

// notes are warnings about the settings.
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
		case t.state != nil && content != t.state.Content && !strings.HasPrefix(content, t.state.Content+"-"):
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
			notes = append(notes, fmt.Sprintf("expedite %q is for whatever that gets later, too; write %q for this content alone", text, gate.Mark(text, t.state.id())))
		} else if !strings.Contains(text, "@") {
			notes = append(notes, fmt.Sprintf("expedite %q is for whatever that gets next, too: it waits for no stage; remove it once nothing is to be expedited", text))
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

// withoutClusters are the hosts that changes under way reach and that have no clusters, where others report.
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
