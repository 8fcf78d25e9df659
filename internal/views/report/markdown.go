package report

import (
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	// markdownRows limits lists in Markdown, and markdownRunes texts.
	markdownRows  = 25
	markdownRunes = 200
)

// Markdown returns the page for a pull request: counts, then problems. The last line counts lines beyond limit bytes; 0 means no
// limit. Texts are code spans, in which no Git host makes links, mentions or pictures.
func Markdown(p *Page, limit int) string {
	m := &markdown{page: p}
	m.counts(p.Count())
	m.rules()
	m.assignments(verdict.Failed)
	m.rollouts()
	m.promotions()
	m.comparisons()
	m.assignments(verdict.Behind)
	m.clusters()
	m.unscheduled()
	m.assignments(verdict.Progressing)
	m.assignments(verdict.Unknown)
	m.idle()
	return cut(m.lines, limit)
}

func cut(lines []string, limit int) string {
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	if limit <= 0 || size <= limit {
		return strings.Join(lines, "\n") + "\n"
	}
	note := func(kept int) string {
		return "\n_" + counted(len(lines)-kept, "more line") + " would not fit and " + isAre(len(lines)-kept) + " left out._\n"
	}
	room := limit - len(note(0))
	kept, used := 0, 0
	for kept < len(lines) && used+len(lines[kept])+1 <= room {
		used += len(lines[kept]) + 1
		kept++
	}
	if room < 0 {
		return ""
	}
	kept = withoutTableHeads(lines, kept)
	text := strings.Join(lines[:kept], "\n")
	if kept > 0 {
		text += "\n"
	}
	return text + note(kept)
}

// withoutTableHeads returns the number of lines to keep without a final heading or head of a table.
func withoutTableHeads(lines []string, kept int) int {
	for kept > 0 {
		switch last := lines[kept-1]; {
		case last == "" || strings.HasPrefix(last, "### "):
			kept--
		case strings.HasPrefix(last, "|-"):
			kept -= 2
		case strings.HasPrefix(last, "| ") && kept < len(lines) && strings.HasPrefix(lines[kept], "|-"):
			kept--
		default:
			return kept
		}
	}
	return kept
}

func isAre(n int) string { return wording.OneOrMany(n, "is", "are") }

// Code returns a code span of one line and at most 200 characters, which fits into a table cell.
func Code(text string) string { return code(text) }

// code replaces pipes with a similar character: they end cells, and Git hosts disagree about their escape.
func code(text string) string { return codeOf(text, markdownRunes) }

func codeOf(text string, most int) string {
	text = clean(text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	if text == "" {
		return ""
	}
	text = strings.ReplaceAll(text, "|", "│")
	longest, run := 0, 0
	for i := range len(text) {
		run++
		if text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 || text[0] == ' ' || text[len(text)-1] == ' ' {
		text = " " + text + " "
	}
	return fence + text + fence
}

type markdown struct {
	page  *Page
	lines []string
}

func (m *markdown) add(lines ...string) { m.lines = append(m.lines, lines...) }

// table writes a section with the first rows of a list.
func (m *markdown) table(title string, all int, heads []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	m.add("", "### "+title, "")
	m.heads(heads)
	for _, row := range rows {
		m.row(row)
	}
	if all > len(rows) {
		m.add("", "… and "+number(all-len(rows))+" more.")
	}
}

// heads begins a table. A final colon marks a column of numbers.
func (m *markdown) heads(heads []string) {
	marks := make([]string, len(heads))
	for i, head := range heads {
		marks[i] = "---"
		if strings.HasSuffix(head, ":") {
			marks[i] = "--:"
		}
	}
	m.row(heads)
	m.add("|" + strings.Join(marks, "|") + "|")
}

func (m *markdown) row(cells []string) {
	trimmed := make([]string, len(cells))
	for i, cell := range cells {
		trimmed[i] = strings.TrimSuffix(cell, ":")
	}
	m.add("| " + strings.Join(trimmed, " | ") + " |")
}

func (m *markdown) counts(s Counts) {
	p := m.page
	title := "## Flotilla: " + code(p.Title)
	if p.Environment != "" {
		title += " in " + code(p.Environment)
	}
	m.add(title, "")
	var facts []string
	if p.Health != nil {
		facts = append(facts, "**Health "+number(p.Health.Value)+", "+string(p.Grade(p.Health))+"**")
	}
	hosts := map[string]bool{}
	for i := range p.Assignments {
		hosts[p.Assignments[i].Host] = true
	}
	facts = append(facts, counted(len(p.Assignments), "assignment")+" on "+counted(len(hosts), "host"), counted(len(p.Clusters), "cluster"))
	if at := moment(p.Time); at != "" {
		facts = append(facts, "evidence of "+at)
	}
	if p.Commit != "" {
		facts = append(facts, "commit "+code(short(clean(p.Commit))))
	}
	m.add(strings.Join(facts, " · "), "")
	heads := []string{""}
	assignments, clusters := []string{"assignments"}, []string{"clusters"}
	for i, verdict := range verdicts {
		if verdict == "" && s.assignments[i] == 0 && s.clusters[i] == 0 {
			continue
		}
		name := verdictName(verdict)
		if verdict == "" {
			name = "not reported"
		}
		heads = append(heads, name+":")
		assignments, clusters = append(assignments, number(s.assignments[i])), append(clusters, number(s.clusters[i]))
	}
	m.heads(heads)
	m.row(assignments)
	if len(p.Clusters) > 0 {
		m.row(clusters)
	}
	if pending := s.New + s.Changed + s.Removed; pending > 0 {
		m.add("", counted(pending, "assignment")+" "+isAre(pending)+" not deployed as wanted: "+number(s.New)+" new, "+number(s.Changed)+
			" changed, "+number(s.Removed)+" being removed. Waiting for something: "+number(s.Waiting)+".")
	}
}

func (m *markdown) rules() {
	var rows [][]string
	all := 0
	for i := range m.page.Rules {
		rule := &m.page.Rules[i]
		all += broken(rule)
		add := func(where, why string) {
			if len(rows) < markdownRows {
				rows = append(rows, []string{code(rule.Name), code(rule.Mode), where, why})
			}
		}
		switch {
		case rule.Error != "":
			add(code("the rule itself"), code(rule.Error))
		case broken(rule) > 0 && len(rule.Violations) == 0:
			add("", number(broken(rule))+" of "+number(rule.Looked))
		}
		for _, v := range first(rule.Violations, markdownRows) {
			add(code(v.Subject.String()), code(v.Message))
		}
	}
	m.table("Constraints broken ("+number(all)+")", all, []string{"Constraint", "Mode", "Where", "Why"}, rows)
}

func (m *markdown) assignments(of verdict.Verdict) {
	var rows [][]string
	all := 0
	for i := range m.page.Assignments {
		a := &m.page.Assignments[i]
		if verdicts[rank(a.Verdict)] != of {
			continue
		}
		all++
		if len(rows) < markdownRows {
			why := code(a.Message)
			if a.WaitsFor != "" {
				why = strings.TrimPrefix(why+", waits for "+code(a.WaitsFor), ", ")
			}
			rows = append(rows, []string{code(a.Target), code(a.Host), m.since(a.Since), why})
		}
	}
	name := string(of)
	title := strings.ToUpper(name[:1]) + name[1:] + " (" + number(all) + ")"
	m.table(title, all, []string{"Deployment target", "Host", "Since", "Why"}, rows)
}

func rowsOf[T any](list []T, cells func(one *T) []string) [][]string {
	var rows [][]string
	for i := range first(list, markdownRows) {
		rows = append(rows, cells(&list[i]))
	}
	return rows
}

func (m *markdown) rollouts() {
	ordered := slices.Clone(m.page.Rollouts)
	slices.SortStableFunc(ordered, func(a, b rollout.Progress) int { return oneIf(b.IsHalted()) - oneIf(a.IsHalted()) })
	m.table(
		"Rollouts ("+number(len(ordered))+")",
		len(ordered),
		[]string{"Deployment target", "", "Stage", "Hosts:", "Waits for", "Since"},
		rowsOf(ordered, func(r *rollout.Progress) []string {
			stage, state := number(r.Stage)+" of "+number(r.Stages), "under way"
			if r.Removes {
				stage = "removal " + stage
			}
			if r.StageName != "" {
				stage += ", " + code(r.StageName)
			}
			if r.IsHalted() {
				state = "**halted**"
			}
			return []string{
				code(r.DeploymentTarget),
				state,
				stage,
				number(r.HostsDone) + " of " + number(r.Hosts),
				code(r.WaitText()),
				m.since(r.Since),
			}
		}),
	)
}

func (m *markdown) promotions() {
	m.table(
		"Promotions",
		len(m.page.Promotions),
		[]string{"Promotion", "Candidate", "Promoted", "Waits for", "Since"},
		rowsOf(m.page.Promotions, func(one *Promotion) []string {
			return []string{code(one.Name), code(one.Candidate), code(one.Promoted), code(one.WaitsFor), m.since(one.Since)}
		}),
	)
}

func (m *markdown) clusters() {
	found := notReady(m.page.Clusters)
	m.table(
		"Clusters that are not ready ("+number(len(found))+")",
		len(found),
		[]string{"Cluster", "Verdict", "Commits behind:", "Since", "Why"},
		rowsOf(found, func(c **Cluster) []string {
			behind := ""
			if (*c).Behind > 0 {
				behind = number((*c).Behind)
			}
			return []string{code((*c).Name), verdictName((*c).Verdict), behind, m.since((*c).Since), code((*c).Message)}
		}),
	)
}

func (m *markdown) unscheduled() {
	all := m.page.Unscheduled
	m.table(
		"Deployment targets without a host ("+number(len(all))+")",
		len(all),
		[]string{"Deployment target", "Why", "Nearest host", "Lacks"},
		rowsOf(all, func(u *schedule.Unscheduled) []string {
			return []string{code(u.DeploymentTarget), code(u.Reason), code(u.NearestHost), code(u.FailedRequirement)}
		}),
	)
}

func (m *markdown) idle() {
	all := m.page.IdlePolicies
	m.table(
		"Target policies that select nothing ("+number(len(all))+")",
		len(all),
		[]string{"Target policy", "Why"},
		rowsOf(all, func(one *schedule.IdlePolicy) []string {
			return []string{code(one.Name), code(one.Reason)}
		}),
	)
}

func (m *markdown) since(t time.Time) string {
	if long := ago(t, m.page.Time); long != "" {
		return long
	}
	return moment(t)
}
