package report

import (
	"html/template"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
