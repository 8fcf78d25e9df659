package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Progress is how far the change of one deployment target is after a step. It has nothing that changes with
// reports alone, so that it stays the same until something is decided.
type Progress struct {
	DeploymentTarget string
	// Content is what is approved, as `<deployment target>@<content>`; "" where no rollout is under way.
	Content     string
	Stage, Of   int    // from 1
	Name        string // of the stage; "" for that of the hosts that no stage names
	Done, Hosts int
	Since       time.Time // when it got to its stage
	WaitsFor    string
	// Failed says that it halts, or was rolled back, until something changes.
	Failed bool
	// WentBack says that it failed and was rolled back.
	WentBack bool
	// Retry is the approval with which it is tried again; "" where nothing was rolled back.
	Retry string
	// Waiting is how many folders are not as they are wanted.
	Waiting int
	detail  string
}

// waits counts folders by what they wait for.
type waits struct {
	total int
	by    map[string]int
}

func (w *waits) add(why string) {
	if w.by == nil {
		w.by = map[string]int{}
	}
	w.total++
	w.by[why]++
}

// first is what has to be done first.
func (w *waits) first() string {
	for _, why := range whatIsWaitedFor() {
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
	if t.state == nil {
		for _, m := range t.members {
			p.Hosts++
			if m.done {
				p.Done++
			}
		}
		return p
	}
	s := t.state
	for _, m := range t.members {
		if m.touched == nil {
			continue
		}
		p.Hosts++
		if m.done {
			p.Done++
		}
	}
	p.Content, p.Since, p.Of = s.id(), s.Since, len(r.stages)
	p.Stage = min(s.Passed+1, p.Of)
	p.Name = r.stages[p.Stage-1].Name
	p.Failed = s.Failed || t.failing
	if p.Failed {
		p.WaitsFor = waitsForFix
	}
	if s.Failed {
		p.WentBack, p.Retry = true, gate.Mark(t.name, s.next())
	}
	p.detail = r.detail(t, p)
	return p
}

// detail says more of what is waited for. It may change with each report.
func (r *run) detail(t *target, p *Progress) string {
	switch p.WaitsFor {
	case waitsForReady:
		c := t.counts
		switch {
		case c.silent && c.soaking > 0:
			return "until " + c.soaked.UTC().Format(time.RFC3339)
		case c.total() == 0:
			return ""
		}
		text := fmt.Sprintf("%d of %s ready", c.ready, wording.Count(c.total(), "cluster is", "clusters are"))
		for _, part := range []struct {
			count int
			word  string
		}{{c.soaking, "soaking"}, {c.waiting, "not ready yet"}, {c.failed, "failed"}, {c.unknown, "unknown"}} {
			if part.count > 0 {
				text += fmt.Sprintf(", %d %s", part.count, part.word)
			}
		}
		if c.soaking > 0 && c.waiting+c.unknown == 0 {
			text += ", until " + c.soaked.UTC().Format(time.RFC3339)
		}
		return text
	case waitsForFix:
		if p.Retry != "" {
			return fmt.Sprintf("it was rolled back; add %q to approvals to try it again", p.Retry)
		}
		return wording.Count(t.counts.failed, "cluster has", "clusters have") + " failed"
	case waitsForApproval:
		return strconv.Quote(gate.Mark(t.name, p.Content))
	case waitsForWindow:
		if r.opens == "" { // the same for all
			r.opens = strings.TrimPrefix(r.Settings.Windows.Waits(r.Now), "a window, ")
		}
		return r.opens
	}
	return ""
}

// String is what `rolling_out` says of the target.
func (p Progress) String() string {
	var b strings.Builder
	if p.Of > 0 {
		fmt.Fprintf(&b, "stage %d of %d%s, ", p.Stage, p.Of, p.quotedName())
	}
	fmt.Fprintf(&b, "%d of %s", p.Done, wording.Count(p.Hosts, "host", "hosts"))
	if !p.Since.IsZero() {
		fmt.Fprintf(&b, ", since %s", p.Since.UTC().Format(time.RFC3339))
	}
	switch {
	case p.WentBack:
		b.WriteString(saidWentBack)
	case p.Failed:
		b.WriteString(saidFailed)
	default:
		b.WriteString(saidWaits + p.WaitsFor)
	}
	if p.Content != "" {
		b.WriteString(" (" + gate.Mark(p.DeploymentTarget, p.Content) + ")")
	}
	return b.String()
}

func (p Progress) quotedName() string {
	if p.Name == "" {
		return ""
	}
	return " " + strconv.Quote(p.Name)
}

// MaxListed is how many deployment targets `rolling_out` lists by themselves.
const MaxListed = 300

// RollingOut says by deployment target how far it is. Where more than MaxListed are under way, those that
// are equally far are one entry, so that it stays small for any fleet.
func (o *Outcome) RollingOut() map[string]string {
	said := make(map[string]string, min(len(o.Progress), MaxListed))
	if len(o.Progress) <= MaxListed {
		for _, p := range o.Progress {
			said[p.DeploymentTarget] = p.String()
		}
		return said
	}
	for _, group := range o.groups() {
		name := group.DeploymentTarget
		if group.targets > 1 {
			name = fmt.Sprintf("%s and %d more", name, group.targets-1)
		}
		said[name] = group.String()
	}
	return said
}

// progressGroup is deployment targets that are equally far: the first of them, with the hosts of all.
type progressGroup struct {
	Progress
	targets int
}

// groups puts together what waits for the same at the same stage, the most folders first.
func (o *Outcome) groups() []*progressGroup {
	type likeness struct {
		stage, of int
		waitsFor  string
		failed    bool
		retried   bool
	}
	groups := map[likeness]*progressGroup{}
	var order []*progressGroup
	for _, p := range o.Progress {
		like := likeness{p.Stage, p.Of, p.WaitsFor, p.Failed, p.WentBack}
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
		group.Done, group.Hosts, group.Waiting = group.Done+p.Done, group.Hosts+p.Hosts, group.Waiting+p.Waiting
		if p.Since.Before(group.Since) {
			group.Since = p.Since
		}
	}
	slices.SortStableFunc(order, func(a, b *progressGroup) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return order
}

// maxLines bounds what Lines returns.
const maxLines = 10

// Lines say for people what waits, and for what. They are never more than ten.
func (o *Outcome) Lines() []string {
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
	name := p.DeploymentTarget
	if p.Content != "" {
		name = gate.Mark(name, p.Content)
	}
	if targets > 1 {
		name = wording.Count(targets, "deployment target", "deployment targets")
	}
	where := ""
	if p.Of > 0 {
		where = fmt.Sprintf(" at stage %d of %d%s", p.Stage, p.Of, p.quotedName())
	}
	text := fmt.Sprintf("%s%s, on %d of %s: waits for %s", name, where, p.Done, wording.Count(p.Hosts, "host", "hosts"), p.WaitsFor)
	if targets == 1 && p.detail != "" {
		text += ": " + p.detail
	}
	return text
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
	for i := range r.Settings.Stages {
		if stage := &r.Settings.Stages[i]; stage.selects() && !r.isAnyIn(stage) {
			notes = append(notes, fmt.Sprintf("stage %q selects no host of the fleet, and is skipped", stage.Name))
		}
	}
	return notes
}

func (r *run) isAnyIn(stage *Stage) bool {
	for name, host := range r.Hosts {
		if stage.matches(name, host) {
			return true
		}
	}
	return false
}
