package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/audit"
)

func TestUnknownMembersAreNull(t *testing.T) {
	t.Parallel()
	text, err := (&audit.Report{Assignment: "dev", Rules: []audit.Rule{{Name: "one", Holds: true}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	rule := read["rules"].([]any)[0].(map[string]any)
	health := read["health"].(map[string]any)
	if read["format"] != "1" || read["commit"] != nil || read["time"] != nil || health["score"] != nil || rule["error"] != nil {
		t.Errorf("the report is %s", text)
	}
	if list, ok := rule["violations"].([]any); !ok || len(list) != 0 {
		t.Errorf("violations are %v", rule["violations"])
	}
	if empty, _ := (&audit.Report{}).Marshal(); !strings.Contains(string(empty), `"rules": []`) {
		t.Errorf("a report without rules is %s", empty)
	}
}

func TestMarkdownListsFirstViolationsAndCountsTheRest(t *testing.T) {
	t.Parallel()
	rule := audit.Rule{
		Name:       "no-latest",
		Mode:       "enforce",
		Expression: `object.kind != "Pod"`,
		Over:       "objects",
		Looked:     2000,
		Passed:     100,
		Violated:   1900,
		Omitted:    900,
	}
	for i := range 1000 {
		rule.Violations = append(rule.Violations, audit.Violation{Subject: fmt.Sprintf("assignment %d", i), Message: "is wrong"})
	}
	why := "it may cost no more than 10"
	report := &audit.Report{
		Assignment: "dev",
		Rules:      []audit.Rule{rule, {Name: "costly", Mode: "inform", Over: "objects", Looked: 5, Failed: 5, Omitted: 5, Error: &why}},
	}
	report.Summarize()
	text := report.Markdown()
	for _, want := range []string{
		"2 rules: 0 hold, 2 are broken, 1 of them enforced. Looked at 2005 subjects, of which 100 passed.", "| `no-latest` | `enforce` | **no** | 2000 `objects` | 100 | 1900 | 0 | 0 |",
		"- `assignment 49`: `is wrong`\n- … and 1850 more\n", "It could not be evaluated: `it may cost no more than 10`\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the Markdown lacks %q: %s", want, text[:min(4000, len(text))])
		}
	}
	if strings.Contains(text, "assignment 50") {
		t.Error("the Markdown lists more than 50 violations")
	}
}

// FuzzMarkdown checks that each text stays in code and in its line.
func FuzzMarkdown(f *testing.F) {
	f.Add("\u009b31m\u202e\x7f\U000e0041", "\x1b]0;x\x07\u200b")
	f.Add("a|b`c", "</td><script>alert(1)</script>\n# x\n@everyone ![x](http://example.com)")
	f.Fuzz(func(t *testing.T, first, second string) {
		lines := func(first, second string) int {
			report := &audit.Report{
				Assignment: first, Environment: second, Repository: audit.Place{URL: first, Branch: second, Path: first}, Commit: &second,
				Rules: []audit.Rule{{
					Name: first, Mode: second, Expression: first, Over: second, Error: &first, Violated: 1,
					Violations: []audit.Violation{{Subject: first, Message: second}},
				}},
			}
			return strings.Count(report.Markdown(), "\n")
		}
		if first == "" || second == "" {
			return
		}
		if got, want := lines(first, second), lines("x", "y"); got != want {
			t.Errorf("%q and %q make %d lines, want %d", first, second, got, want)
		}
		text, err := (&audit.Report{Rules: []audit.Rule{{Error: &first, Violations: []audit.Violation{{Subject: first, Message: second}}}}}).Marshal()
		if err != nil || bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }) {
			t.Errorf("%v: %q", err, text)
		}
		var read audit.Report
		if err := json.Unmarshal(text, &read); err != nil || utf8.ValidString(first) && *read.Rules[0].Error != first {
			t.Errorf("%v: %q is read as %+v", err, first, read)
		}
	})
}
