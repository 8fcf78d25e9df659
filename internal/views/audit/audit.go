// Package audit writes the report for auditors: for each rule of a fleet, on what it was evaluated, what passed and what
// did not, when, and at which commit. It is pure, and the same report gives the same bytes.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode"
	"unicode/utf16"
)

// Format is the version of the JSON. A reader refuses a version that it does not know. Members may be added to a version; none
// is removed or gets another meaning.
const Format = "1"

// Report is the report; its tags are the names in the JSON. Times are RFC 3339 in UTC. A member without a value is null.
type Report struct {
	// Format is that of the JSON; Marshal sets it.
	Format string `json:"format"`
	// Assignment is the name of the flotilla_assignment.
	Assignment  string     `json:"assignment"`
	Environment string     `json:"environment"`
	Repository  Repository `json:"repository"`
	// Commit is the tip of the branch that was looked at; null where there was none.
	Commit *string `json:"commit"`
	// Time is when the clusters were asked; null where none was.
	Time *time.Time `json:"time"`
	// Fleet counts the objects of the fleet, Deployed the assignments by what is deployed, and Verdicts by what clusters report.
	Fleet    Fleet    `json:"fleet"`
	Deployed Deployed `json:"deployed"`
	Verdicts Verdicts `json:"verdicts"`
	Health   Health   `json:"health"`
	// Summary counts the rules.
	Summary Summary `json:"summary"`
	// Rules are in the order of their names.
	Rules []Rule `json:"rules"`
}

// Repository is where the assignment writes. The URL has no credentials in it.
type Repository struct {
	URL    string `json:"url"`
	Branch string `json:"branch"`
	Path   string `json:"path"`
}

// Fleet counts what a fleet has.
type Fleet struct {
	ClusterTypes      int `json:"cluster_types"`
	Clusters          int `json:"clusters"`
	Workspaces        int `json:"workspaces"`
	Workloads         int `json:"workloads"`
	DeploymentTargets int `json:"deployment_targets"`
	TargetPolicies    int `json:"target_policies"`
	ConfigContainers  int `json:"config_containers"`
	Assignments       int `json:"assignments"`
	// Unscheduled are deployment targets without a host.
	Unscheduled int `json:"unscheduled"`
}

// Deployed counts assignments by how they differ from what the branch has.
type Deployed struct {
	UpToDate int `json:"up_to_date"`
	New      int `json:"new"`     // not on the branch yet
	Changed  int `json:"changed"` // on the branch, with other content than wanted
	// Removed are folders on the branch that the fleet does not want any more. They are no assignments of the fleet.
	Removed int `json:"removed"`
	// Unknown are those that could not be compared, since something is not known yet or the repository could not be read.
	Unknown int `json:"unknown"`
}

// Verdicts count assignments by the worst that clusters report.
type Verdicts struct {
	Ready       int `json:"ready"`
	Progressing int `json:"progressing"`
	Behind      int `json:"behind"`
	Failed      int `json:"failed"`
	Unknown     int `json:"unknown"`
	// NotAsked are those that are not on the branch yet, that no cluster follows, or all where there is no evidence.
	NotAsked int `json:"not_asked"`
}

// Health is the health score.
type Health struct {
	// Score and Grade are null where no cluster was asked.
	Score *int    `json:"score"`
	Grade *string `json:"grade"`
	// Good and Poor are the bounds of the grades.
	Good int `json:"good"`
	Poor int `json:"poor"`
}

// Summary counts the rules, and the subjects that they were evaluated on.
type Summary struct {
	Rules int `json:"rules"`
	// Holding are the rules of which no violation is known.
	Holding int `json:"holding"`
	// Broken are the other rules. BrokenEnforced are those of them that are enforced, so that they fail a plan.
	Broken         int `json:"broken"`
	BrokenEnforced int `json:"broken_enforced"`
	// The sums over all rules.
	Looked    int `json:"looked"`
	Passed    int `json:"passed"`
	Violated  int `json:"violated"`
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"`
}

// Rule is a constraint. Looked is Passed, Violated, Failed and Undecided together.
type Rule struct {
	Name string `json:"name"`
	// Mode is "enforce" or "inform".
	Mode string `json:"mode"`
	// Expression is the rule itself, in CEL.
	Expression string `json:"expression"`
	// Over is the kind of its subjects: "objects", "assignments", "hosts", "deployment_targets", "workspaces" or "fleet".
	Over  string `json:"over"`
	Holds bool   `json:"holds"`
	// Looked is the number of its subjects.
	Looked   int `json:"looked"`
	Passed   int `json:"passed"`
	Violated int `json:"violated"`
	// Failed are the subjects for which it could not be evaluated, and Undecided those of which something is not known yet.
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"`
	// Error says why the rule as a whole could not be evaluated.
	Error *string `json:"error"`
	// Violations are the first subjects that violate it or could not be evaluated, and Omitted is the number of the others.
	Violations []Violation `json:"violations"`
	Omitted    int         `json:"omitted"`
}

// Violation is a subject that violates a rule. Members that do not apply are null.
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
	// Failed says that the rule could not be evaluated for it.
	Failed bool `json:"failed"`
}

// Marshal writes the report as JSON, indented, with a line break at its end.
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

// escaped writes what steers a terminal, or hides, as JSON can write any character: \u009b. The encoder leaves those
// beyond ASCII as they are.
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

// Summarize sets Summary from Rules.
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
