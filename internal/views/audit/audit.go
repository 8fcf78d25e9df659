// Package audit writes the report for auditors: the subjects, passes and violations of each rule of a fleet, the time, and the
// commit. It is pure, and the same report gives the same bytes.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// Format is the version of the JSON. A reader rejects unknown versions. New members may appear in a version; members never
// disappear or change their meaning.
const Format = "1"

// Report is the report; its tags are the names in the JSON. Times are RFC 3339 in UTC. A member without a value is null.
type Report struct {
	// Format is the version of the JSON. Marshal sets it.
	Format string `json:"format"`
	// Assignment is the name of the flotilla_assignment.
	Assignment  string     `json:"assignment"`
	Environment string     `json:"environment"`
	Repository  Repository `json:"repository"`
	// Commit is the tip of the branch; null without a branch.
	Commit *string `json:"commit"`
	// Time is the time of the clusters' reports; null without reports.
	Time *time.Time `json:"time"`
	// Fleet counts the objects of the fleet, Deployed its assignments by difference, and Verdicts by verdict.
	Fleet    report.FleetCounts `json:"fleet"`
	Deployed report.StateCounts `json:"deployed"`
	Verdicts Verdicts           `json:"verdicts"`
	Health   Health             `json:"health"`
	// Summary counts the rules.
	Summary Summary `json:"summary"`
	// Rules lists the rules by name.
	Rules []Rule `json:"rules"`
}

// Repository is the location of the assignment. The URL has no credentials.
type Repository struct {
	URL    string `json:"url"`
	Branch string `json:"branch"`
	Path   string `json:"path"`
}

// Verdicts counts assignments by their worst verdict.
type Verdicts struct {
	Ready       int `json:"ready"`
	Progressing int `json:"progressing"`
	Behind      int `json:"behind"`
	Failed      int `json:"failed"`
	Unknown     int `json:"unknown"`
	// NotAsked counts assignments that are not on the branch yet or have no cluster, or all without evidence.
	NotAsked int `json:"not_asked"`
}

// Health is the health score.
type Health struct {
	// Score and Grade are null without reports.
	Score *int    `json:"score"`
	Grade *string `json:"grade"`
	// Good and Poor are the bounds of the grades.
	Good int `json:"good"`
	Poor int `json:"poor"`
}

// Summary counts the rules and their subjects.
type Summary struct {
	Rules int `json:"rules"`
	// Holding counts the rules without a known violation.
	Holding int `json:"holding"`
	// Broken counts the other rules, and BrokenEnforced the enforced ones, which fail a plan.
	Broken         int `json:"broken"`
	BrokenEnforced int `json:"broken_enforced"`
	// The sums over all rules follow.
	Looked    int `json:"looked"`
	Passed    int `json:"passed"`
	Violated  int `json:"violated"`
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"`
}

// Rule is a constraint. Looked is the sum of Passed, Violated, Failed and Undecided.
type Rule struct {
	Name string `json:"name"`
	// Mode is "enforce" or "inform".
	Mode string `json:"mode"`
	// Expression is the rule in CEL.
	Expression string `json:"expression"`
	// Over is the kind of its subjects: "objects", "assignments", "hosts", "deployment_targets", "workspaces" or "fleet".
	Over  string `json:"over"`
	Holds bool   `json:"holds"`
	// Looked is the number of subjects.
	Looked   int `json:"looked"`
	Passed   int `json:"passed"`
	Violated int `json:"violated"`
	// Failed counts subjects with an evaluation error, and Undecided those with unknown parts.
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"`
	// Error explains why the whole rule could not be evaluated.
	Error *string `json:"error"`
	// Violations lists the first subjects with a violation or an evaluation error. Omitted counts the others.
	Violations []Violation `json:"violations"`
	Omitted    int         `json:"omitted"`
}

// Violation is a subject that violates a rule. Members without a meaning for it are null.
type Violation struct {
	// Subject names it for people.
	Subject          string  `json:"subject"`
	Workspace        *string `json:"workspace"`
	Host             *string `json:"host"`
	DeploymentTarget *string `json:"deployment_target"`
	Assignment       *string `json:"assignment"`
	File             *string `json:"file"`
	Object           *string `json:"object"`
	Message          string  `json:"message"`
	// Failed reports an evaluation error.
	Failed bool `json:"failed"`
}

// Marshal returns the report as indented JSON with a final line break.
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
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(written); err != nil {
		return nil, err
	}
	return escaped(b.Bytes()), nil
}

// escaped escapes control and invisible characters beyond ASCII, such as \u009b, which the encoder keeps.
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
