// Package audit writes the report for auditors: subjects, passes and violations of each rule. It is pure.
package audit

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// Format is the version of the JSON. Later programs may add members to a version, but never remove or redefine one.
const Format = "1"

// Report is the report; its tags are the names in the JSON. Times are RFC 3339 in UTC. Unknown members are null.
type Report struct {
	Format      string             `json:"format"`
	Assignment  string             `json:"assignment"`
	Environment string             `json:"environment"`
	Repository  Place              `json:"repository"`
	Commit      *string            `json:"commit"`
	Time        *time.Time         `json:"time"`
	Fleet       report.FleetCounts `json:"fleet"`
	Deployed    report.StateCounts `json:"deployed"`
	Verdicts    Verdicts           `json:"verdicts"`
	Health      Health             `json:"health"`
	Summary     Summary            `json:"summary"`
	Rules       []Rule             `json:"rules"`
}

// Place is the location of the assignment. The URL has no credentials.
type Place struct {
	URL    string `json:"url"`
	Branch string `json:"branch"`
	Path   string `json:"path"`
}

// Verdicts counts assignments by worst verdict.
type Verdicts struct {
	Ready       int `json:"ready"`
	Progressing int `json:"progressing"`
	Behind      int `json:"behind"`
	Failed      int `json:"failed"`
	Unknown     int `json:"unknown"`
	// NotAsked counts assignments that are not on the branch, have no cluster or no evidence.
	NotAsked int `json:"not_asked"`
}

// Health is the health score.
type Health struct {
	Score *int    `json:"score"`
	Grade *string `json:"grade"`
	Good  int     `json:"good"`
	Poor  int     `json:"poor"`
}

// Summary counts the rules and their subjects.
type Summary struct {
	Rules int `json:"rules"`
	// Holding counts the rules without a known violation.
	Holding int `json:"holding"`
	// Broken counts the other rules; BrokenEnforced fail a plan.
	Broken         int `json:"broken"`
	BrokenEnforced int `json:"broken_enforced"`
	Looked         int `json:"looked"`
	Passed         int `json:"passed"`
	Violated       int `json:"violated"`
	Failed         int `json:"failed"`
	Undecided      int `json:"undecided"`
}

// Rule is a constraint. Looked is the sum of Passed, Violated, Failed and Undecided.
type Rule struct {
	Name       string `json:"name"`
	Mode       string `json:"mode"`
	Expression string `json:"expression"`
	// Over is the kind of its subjects: "objects", "assignments", "hosts", "deployment_targets", "workspaces" or "fleet".
	Over     string `json:"over"`
	Holds    bool   `json:"holds"`
	Looked   int    `json:"looked"`
	Passed   int    `json:"passed"`
	Violated int    `json:"violated"`
	// Failed counts evaluation errors, and Undecided unknown subjects.
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"`
	// Error explains why the whole rule could not be evaluated.
	Error *string `json:"error"`
	// Violations lists the first ones; Omitted counts the others.
	Violations []Violation `json:"violations"`
	Omitted    int         `json:"omitted"`
}

// Violation is a subject that violates a rule.
type Violation struct {
	Subject          string  `json:"subject"`
	Workspace        *string `json:"workspace"`
	Host             *string `json:"host"`
	DeploymentTarget *string `json:"deployment_target"`
	Assignment       *string `json:"assignment"`
	File             *string `json:"file"`
	Object           *string `json:"object"`
	Message          string  `json:"message"`
	Failed           bool    `json:"failed"`
}

// Marshal returns indented JSON with a final line break.
func (r *Report) Marshal() ([]byte, error) {
	written := *r
	written.Format = Format
	written.Rules = make([]Rule, len(r.Rules))
	for i, rule := range r.Rules {
		if rule.Violations == nil {
			rule.Violations = []Violation{}
		}
		written.Rules[i] = rule
	}
	text, err := json.MarshalIndent(written, "", "  ")
	if err != nil {
		return nil, err
	}
	return escaped(append(text, '\n')), nil
}

// escaped escapes invisible characters that the encoder keeps, such as \u009b.
func escaped(text []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf) }
	if !bytes.ContainsFunc(text, hidden) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			first, second := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, first, second)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// Summarize computes Summary from Rules.
func (r *Report) Summarize() {
	s := Summary{Rules: len(r.Rules)}
	for i := range r.Rules {
		rule := &r.Rules[i]
		switch {
		case rule.Holds:
			s.Holding++
		case rule.Mode == "enforce":
			s.BrokenEnforced++
			fallthrough
		default:
			s.Broken++
		}
		s.Looked, s.Passed, s.Violated = s.Looked+rule.Looked, s.Passed+rule.Passed, s.Violated+rule.Violated
		s.Failed, s.Undecided = s.Failed+rule.Failed, s.Undecided+rule.Undecided
	}
	r.Summary = s
}

// New returns the report about a page, without configuration values, except in messages of rules.
func New(p *report.Page) *Report {
	counts := p.Count()
	r := &Report{
		Assignment: p.Title, Environment: p.Environment, Repository: Place(p.Repository), Commit: wording.OrNil(p.Commit),
		Fleet: p.Fleet, Deployed: counts.StateCounts,
		Verdicts: Verdicts{
			Ready: counts.Wanted(verdict.Ready), Progressing: counts.Wanted(verdict.Progressing), Behind: counts.Wanted(verdict.Behind),
			Failed: counts.Wanted(verdict.Failed), Unknown: counts.Wanted(verdict.Unknown), NotAsked: counts.Wanted(""),
		},
		Health: Health{Good: p.Bounds.Good, Poor: p.Bounds.Poor},
	}
	if !p.Time.IsZero() {
		r.Time = new(p.Time.UTC())
	}
	if score := p.Health; score != nil {
		r.Health.Score, r.Health.Grade = &score.Value, new(string(p.Grade(score)))
	}
	for i := range p.Rules {
		r.Rules = append(r.Rules, newRule(&p.Rules[i], p.Expressions))
	}
	r.Summarize()
	return r
}

func newRule(from *constraint.RuleResult, expressions map[string]string) Rule {
	rule := Rule{
		Name: from.Name, Mode: from.Mode, Expression: expressions[from.Name], Over: string(from.Over), Holds: from.Holds(),
		Looked: from.Looked, Passed: from.Passed, Violated: from.Violated, Failed: from.Failed, Undecided: from.Undecided,
		Error: wording.OrNil(from.Error), Omitted: from.Violated + from.Failed - len(from.Violations),
	}
	for _, violation := range from.Violations {
		s := &violation.Subject
		rule.Violations = append(rule.Violations, Violation{
			Subject: s.String(), Workspace: wording.OrNil(s.Workspace), Host: wording.OrNil(s.Host),
			DeploymentTarget: wording.OrNil(s.DeploymentTarget),
			Assignment:       wording.OrNil(s.Assignment), File: wording.OrNil(s.File), Object: wording.OrNil(s.Object),
			Message: violation.Message, Failed: violation.Failed,
		})
	}
	return rule
}

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
