package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// shownRunes limits one text.
const shownRunes = 1000

// clean replaces invisible characters with U+FFFD and line breaks with spaces, and cuts text.
func clean(text string) string {
	if isPlain(text) {
		return text
	}
	return wording.CutRunes(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case isHidden(r):
			return utf8.RuneError
		}
		return r
	}, text), shownRunes)
}

func isPlain(text string) bool {
	if len(text) > shownRunes {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// isHidden finds control characters, direction marks, annotations and tags, but no joiners, which emoji and some scripts need.
func isHidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf) && r != '\u200c' && r != '\u200d'
}

func short(id string) string {
	shown := 0
	for at := range id {
		if shown == 10 {
			return id[:at]
		}
		shown++
	}
	return id
}

// number writes 20000 as 20,000.
func number(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

func counted(n int, noun string) string {
	return number(n) + " " + wording.OneOrMany(n, noun, noun+"s")
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// ago returns text such as "3 h"; "" if a time is unknown.
func ago(t, evidence time.Time) string {
	if t.IsZero() || evidence.IsZero() || t.After(evidence) {
		return ""
	}
	switch d := evidence.Sub(t); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return counted(int(d/(24*time.Hour)), "day")
	}
}

// percent returns "0 %" only for 0, and "100 %" only for all.
func percent(part, whole int) string {
	switch {
	case whole == 0 || part == 0:
		return "0 %"
	case part*100 < whole:
		return "<1 %"
	}
	return strconv.Itoa(part*100/whole) + " %"
}

func labelTexts(labels map[string]string) []string {
	texts := make([]string, 0, len(labels))
	for key, value := range labels {
		texts = append(texts, key+"="+value)
	}
	slices.Sort(texts)
	return texts
}

// listing is for readers without scripts. It dominates the HTML of a large page, so its rows are short.
func listing(p *Page) template.HTML {
	versions := map[string]string{}
	for i := range p.Targets {
		versions[p.Targets[i].Name] = p.Targets[i].Version
	}
	var byHost wording.Groups[string, *Assignment]
	for i := range p.Assignments {
		byHost.Add(p.Assignments[i].Host, &p.Assignments[i])
	}
	var b strings.Builder
	b.Grow(80 * len(p.Assignments))
	for host, assignments := range byHost.All() {
		worst := len(verdicts) - 1
		for _, a := range assignments {
			worst = min(worst, rank(a.Verdict))
		}
		b.WriteString("<details><summary><bdi>" + escape(host) + `</bdi> <span class="n">` + number(len(assignments)) + "</span> " +
			verdictName(verdicts[worst]) + "</summary><table>")
		for _, a := range assignments {
			b.WriteString("<tr><td>" + verdictName(a.Verdict) + "<th>" + escape(a.Target) + "<td>" + escape(versions[a.Target]))
			if len(a.Running) > 0 {
				b.WriteString("<td>runs")
				for k := range a.Running[:min(len(a.Running), maxRuns)] {
					b.WriteString(" " + escape(a.Running[k].Name()) + " (" + number(a.Running[k].Clusters) + ")")
				}
			}
			if a.Message != "" || a.WaitsFor != "" {
				b.WriteString("<td>" + escape(a.Message))
			}
			if a.WaitsFor != "" {
				b.WriteString("<td>waits for " + escape(a.WaitsFor))
			}
			b.WriteByte('\n')
		}
		b.WriteString("</table></details>\n")
	}
	return template.HTML(b.String()) //nolint:gosec // all texts of the page are escaped
}

func escape(text string) string { return template.HTMLEscapeString(clean(text)) }
