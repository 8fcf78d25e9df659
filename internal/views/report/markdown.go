package report

import (
	"cmp"
	_ "embed"
	"maps"
	"strings"
	"text/template"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	// markdownRows limits lists in Markdown, and markdownRunes texts.
	markdownRows  = 25
	markdownRunes = 200
)

var (
	//go:embed assets/page.md
	pageMarkdown string
	//go:embed assets/comparison.md
	comparisonMarkdown string
)

// markdownTemplates share the functions of the HTML.
var markdownTemplates = func() *template.Template {
	all := maps.Clone(functions)
	maps.Copy(all, template.FuncMap{
		"code": Code, "note": func(text string) string { return codeOf(text, shownRunes) }, "clean": clean, "isAre": isAre, "values": valueCell,
		"shown": func(list any) any { return firstOf(list, markdownRows) },
	})
	parsed := template.Must(template.New("page").Funcs(all).Parse(pageMarkdown))
	return template.Must(parsed.New("comparison").Parse(comparisonMarkdown))
}()

// Markdown returns the page for a pull request: counts, then problems. The last line counts lines beyond limit bytes; 0 means no
// limit. Texts are code spans, in which no Git host makes links, mentions or pictures.
func Markdown(p *Page, limit int) string {
	return cut(execute("page", &view{Page: p, Counts: p.Count()}), limit)
}

func execute(name string, of any) string {
	var b strings.Builder
	if err := markdownTemplates.ExecuteTemplate(&b, name, of); err != nil {
		panic(err) // the templates are part of the binary
	}
	return b.String()
}

func cut(text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
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
	shown := strings.Join(lines[:kept], "\n")
	if kept > 0 {
		shown += "\n"
	}
	return shown + note(kept)
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

// Code returns a code span of one line and at most 200 characters, which fits into a table cell. A similar character replaces
// pipes: they end cells, and Git hosts disagree about their escape.
func Code(text string) string { return codeOf(text, markdownRunes) }

func codeOf(text string, most int) string {
	text = wording.CutRunes(clean(text), most)
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

func (v *view) HostCount() int {
	hosts := map[string]bool{}
	for i := range v.Assignments {
		hosts[v.Assignments[i].Host] = true
	}
	return len(hosts)
}

type verdictCount struct {
	Name                  string
	Assignments, Clusters int
}

// VerdictCounts shows "not reported" only if it occurs.
func (v *view) VerdictCounts() []verdictCount {
	var counts []verdictCount
	for i, is := range verdicts {
		of := verdictCount{cmp.Or(string(is), "not reported"), v.assignments[i], v.clusters[i]}
		if is != "" || of.Assignments+of.Clusters > 0 {
			counts = append(counts, of)
		}
	}
	return counts
}

type brokenRule struct{ Name, Mode, Where, Why string }

func (v *view) BrokenRules() []brokenRule {
	var rows []brokenRule
	for i := range v.Rules {
		rule := &v.Rules[i]
		add := func(where, why string) { rows = append(rows, brokenRule{rule.Name, rule.Mode, where, why}) }
		switch {
		case rule.Error != "":
			add(Code("the rule itself"), Code(rule.Error))
		case broken(rule) > 0 && len(rule.Violations) == 0:
			add("", number(broken(rule))+" of "+number(rule.Looked))
		}
		for _, violation := range first(rule.Violations, markdownRows) {
			add(Code(violation.Subject.String()), Code(violation.Message))
		}
	}
	return first(rows, markdownRows)
}

func (v *view) Violations() int { return v.Broken + v.Informed }

// assigned has the assignments with one verdict.
type assigned struct {
	*view
	Title string
	All   []*Assignment
}

func (v *view) Assigned(of verdict.Verdict) assigned {
	name := string(of)
	found := assigned{view: v, Title: strings.ToUpper(name[:1]) + name[1:]}
	for i := range v.Assignments {
		if a := &v.Assignments[i]; verdicts[rank(a.Verdict)] == of {
			found.All = append(found.All, a)
		}
	}
	return found
}

// Lasts returns text such as "3 h", or else the time.
func (v *view) Lasts(t time.Time) string { return cmp.Or(v.Ago(t), moment(t)) }
