package constraint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// violatedRule returns the result of a rule that the deployment targets violate.
func violatedRule(name string, targets ...string) constraint.RuleResult {
	result := constraint.RuleResult{
		Name:     name,
		Mode:     fleet.Enforce,
		Over:     constraint.OverDeploymentTargets,
		Looked:   20,
		Violated: len(targets),
		Passed:   20 - len(targets),
	}
	for _, target := range targets {
		result.Violations = append(
			result.Violations,
			constraint.RuleViolation{Subject: constraint.Subject{DeploymentTarget: target}, Message: "no " + target},
		)
	}
	return result
}

func TestReportListsFirstViolationsAndTheirNumber(t *testing.T) {
	t.Parallel()
	few := violatedRule("a", "x", "y")
	if got, want := few.Report(), "constraint \"a\" is violated by 2 of 20 deployment targets:\ndeployment target \"x\": no x\ndeployment target \"y\": no y"; got != want {
		t.Errorf("got %s", got)
	}
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("t-%d", i))
	}
	many := violatedRule("a", names...)
	if got := many.Report(); strings.Count(got, "\n") != 6 || !strings.HasSuffix(got, "\n… and 1995 more") {
		t.Errorf("got %s", got)
	}
	failed := constraint.RuleResult{Name: "a", Error: "it would take too much"}
	if got, want := failed.Report(), `constraint "a" could not be evaluated: it would take too much`; got != want {
		t.Errorf("got %s", got)
	}
	hostile := violatedRule("a", "x")
	hostile.Violations[0].Message = "two\nlines " + strings.Repeat("m", 5000)
	if got := hostile.Report(); strings.Count(got, "\n") != 1 || len(got) > 500 {
		t.Errorf("a long message gives %s", got)
	}
}

func TestPlanLinesOfConstraints(t *testing.T) {
	t.Parallel()
	informing := violatedRule("inform", "x", "y", "z", "w")
	undecided := constraint.RuleResult{
		Name: "later", Over: constraint.OverAssignments, Looked: 3, Undecided: 2, Passed: 1,
		WaitsFor: []string{`config container "all"`, `config container "all"`},
	}
	results := &constraint.Results{Rules: []constraint.RuleResult{informing, undecided, violatedRule("kept"), violatedRule("other")}}
	rules := map[string]string{"inform": "1", "later": "1", "kept": "1", "other": "1"}
	const waits = `constraint "later" cannot be decided yet for 2 assignments: it waits for config container "all"`
	for name, test := range map[string]struct {
		before, now map[string]string
		unknown     []string
		allUnknown  bool
		changed     []string // deployment targets
		want        []string
	}{
		"nothing changes":            {rules, rules, nil, false, nil, []string{waits}},
		"a violating target changes": {rules, rules, nil, false, []string{"y", "a"}, []string{`constraint "inform" is violated by 1 deployment target: y`, waits}},
		"all violating targets change": {rules, rules, nil, false, []string{"x", "y", "z", "w"}, []string{
			`constraint "inform" is violated by 4 deployment targets: x, y, z and 1 more`, waits,
		}},
		"all constraints are new": {nil, rules, nil, false, nil, []string{
			`constraint "inform" is violated by 4 deployment targets: x, y, z and 1 more`, waits, `constraints "kept", "other" are new, and hold`,
		}},
		"one constraint has changed": {map[string]string{"inform": "1", "later": "1", "kept": "0", "other": "1"}, rules, nil, false, nil, []string{
			waits, `constraint "kept" has changed, and holds`,
		}},
		"one constraint is removed":   {map[string]string{"inform": "1", "later": "1", "kept": "1", "other": "1", "old": "1"}, rules, nil, false, nil, []string{waits, `constraint "old" is no more`}},
		"one constraint is unknown":   {map[string]string{"inform": "1", "later": "1", "kept": "1", "other": "1", "old": "1"}, rules, []string{"old"}, false, nil, []string{waits, `constraint "old" is not known yet`}},
		"all constraints are unknown": {map[string]string{"old": "1"}, rules, nil, true, nil, []string{waits}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := constraint.Compare(test.before, test.now, test.unknown, test.allUnknown).Lines(results, func(subject constraint.Subject) bool {
				return slices.Contains(test.changed, subject.DeploymentTarget)
			})
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}
