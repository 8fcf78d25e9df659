package audit

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// maxListed limits the violations of a rule in Markdown.
const maxListed = 50

//go:embed audit.md
var text string

var markdown = template.Must(template.New("audit").Funcs(template.FuncMap{"code": report.Code, "count": wording.Count}).Parse(text))

// Markdown returns the report for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	if err := markdown.Execute(&b, r); err != nil {
		panic(err) // the template is part of the binary
	}
	return b.String()
}

// Subjects returns the kind of the subjects in words.
func (r Rule) Subjects() string { return strings.ReplaceAll(r.Over, "_", " ") }

// Listed returns the violations for people, and More counts the others.
func (r Rule) Listed() []Violation { return r.Violations[:min(maxListed, len(r.Violations))] }

// More counts the violations that are not listed.
func (r Rule) More() int { return len(r.Violations) - len(r.Listed()) + r.Omitted }
