package constraint_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestCompileErrorNamesPlaceAndCause(t *testing.T) {
	t.Parallel()
	all := &fleet.Selector{}
	for _, test := range []struct {
		rule fleet.Constraint
		want string // start of each finding, one per line
	}{
		{fleet.Constraint{}, `expression: must be an expression, and is empty`},
		{fleet.Constraint{Expression: "  \n"}, `expression: must be an expression, and is empty`},
		{fleet.Constraint{Expression: `host.name ==`}, `expression: line 1, column 13: Syntax error: mismatched input '<EOF>'`},
		{fleet.Constraint{Expression: "host.name == 'a' &&\n  host.cluster = 'b'"}, `expression: line 2, column 16: Syntax error: token recognition error at: '= '`},
		{fleet.Constraint{Expression: `hots.name == "a"`}, `expression: line 1, column 1: there is no variable or function "hots"; did you mean "host"?`},
		{fleet.Constraint{Expression: `host.lables["a"] == "b"`}, `expression: line 1, column 5: there is no field "lables"; did you mean "labels"?`},
		{fleet.Constraint{Expression: `target.manifests.vresion == ""`}, `expression: line 1, column 17: there is no field "vresion"; did you mean "version"?`},
		{fleet.Constraint{Expression: `target.hosts.all(h, h.regions == "")`}, `expression: line 1, column 22: there is no field "regions"`},
		{fleet.Constraint{Expression: `has(workspace.quota)`}, `expression: line 1, column 4: there is no field "quota"`},
		{fleet.Constraint{Expression: `host.name == 1`}, `expression: line 1, column 11: found no matching overload for '_==_' applied to '(string, int)'`},
		{fleet.Constraint{Expression: `host.name.foo()`}, `expression: line 1, column 14: there is no variable or function "foo"`},
		{fleet.Constraint{Expression: `host.name`}, `expression: must give a bool, not string`},
		{fleet.Constraint{Expression: `config.debug`}, "expression: must give a bool, not dyn: compare it with something, as in `== true`"},
		{fleet.Constraint{Expression: `target.hosts`}, `expression: must give a bool, not list(Host)`},
		{fleet.Constraint{Expression: `1 + 1`}, `expression: must give a bool, not int`},
		{fleet.Constraint{Expression: `host.name.matches("(")`}, `expression: line 1, column 19: invalid matches argument`},
		{fleet.Constraint{Expression: `Host{name: "a"} == host`}, `expression: objects of type Host cannot be made in an expression`},
		{fleet.Constraint{Expression: `[1, "a"].size() == 2`}, `expression: line 1, column 5: expected type 'int' but found 'string'`},
		{fleet.Constraint{Expression: `timestamp("yesterday") < timestamp("2026-11-22T00:00:00Z")`}, `expression: line 1, column 11: invalid timestamp argument`},
		{fleet.Constraint{Expression: `authorizer.group("").resource("pods").check("get").allowed()`}, `expression: line 1, column 1: there is no variable or function "authorizer"`},
		{fleet.Constraint{Expression: `true` + strings.Repeat(" && true", 3000)}, `expression: has 24004 characters, and 16384 are the most: split it into several constraints`},
		{fleet.Constraint{Expression: strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000)}, `expression: expression recursion limit exceeded`},
		{fleet.Constraint{Expression: `true`, MessageExpression: `host.nam`}, `message_expression: line 1, column 5: there is no field "nam"; did you mean "name"?`},
		{fleet.Constraint{Expression: `host.name != ""`, MessageExpression: `size(host.labels)`}, `message_expression: must give a string, not int: string() converts numbers and bools`},
		{fleet.Constraint{Expression: `hots == ""`, MessageExpression: `1`}, "expression: line 1, column 1: there is no variable or function \"hots\"; did you mean \"host\"?\nmessage_expression: must give a string, not int"},

		{
			fleet.Constraint{Expression: `host.name != ""`, Match: fleet.ConstraintMatch{WorkloadSelector: all}},
			`match.workload_selector: selects deployment targets, and the rule is evaluated over hosts: name target, assignment, config, secrets or object in the expression, or leave this out`,
		},
		{
			fleet.Constraint{Expression: `target.name != ""`, Match: fleet.ConstraintMatch{ClusterSelector: all, ClusterTypeSelector: all}},
			"match.cluster_type_selector: selects hosts, and the rule is evaluated over deployment targets\nmatch.cluster_selector: selects hosts",
		},
		{
			fleet.Constraint{Expression: `workspace.name != ""`, Match: fleet.ConstraintMatch{Kinds: []string{"Pod"}}},
			`match.kinds: selects objects, and the rule is evaluated over workspaces: name object in the expression, or leave this out`,
		},
		{
			fleet.Constraint{Expression: `environment != ""`, Match: fleet.ConstraintMatch{Workspace: "payments"}},
			`match.workspace: selects workspaces, and the rule is evaluated over the fleet as a whole`,
		},
		{
			fleet.Constraint{Expression: `host.name != ""`, Match: fleet.ConstraintMatch{ClusterTypeSelector: &fleet.Selector{Expression: "a in ("}}},
			`match.cluster_type_selector.expression: `,
		},
	} {
		findings := constraint.CheckConstraint(test.rule)
		lines := strings.Split(findings.Error(), "\n")
		wanted := strings.Split(test.want, "\n")
		if len(lines) < len(wanted) {
			t.Errorf("%.80q: %s", test.rule.Expression, findings)
			continue
		}
		for i, want := range wanted {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%.80q: got %s, want %s", test.rule.Expression, lines[i], want)
			}
		}
		for _, line := range lines {
			if strings.Contains(line, "<input>") {
				t.Errorf("%.80q: %s", test.rule.Expression, line)
			}
		}
	}
}

func TestAllMistakesInAllRulesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	program, findings := constraint.Compile([]fleet.Constraint{
		{
			Name:       "one",
			Expression: `a.b`,
		}, {Name: "fine", Expression: `true`}, {Name: "two.three", Expression: `host.name`, MessageExpression: `1`},
	})
	want := `constraints["one"].expression: line 1, column 1: there is no variable or function "a"
constraints["two.three"].expression: must give a bool, not string
constraints["two.three"].message_expression: must give a string, not int: string() converts numbers and bools`
	if program != nil || findings.Error() != want {
		t.Errorf("%v\n%s", program, findings)
	}
}

func TestMacroVariableShadowsSubject(t *testing.T) {
	t.Parallel()
	for expression, over := range map[string]constraint.Over{
		`[1].exists(object, object == 1)`:                                                constraint.OverFleet,
		`[1].exists(host, host == 1) && target.name != ""`:                               constraint.OverDeploymentTargets,
		`target.hosts.all(host, host.name != "")`:                                        constraint.OverDeploymentTargets,
		`[1].all(config, host.name != "")`:                                               constraint.OverHosts,
		`[1].map(host, host + 1).size() == size(host.name)`:                              constraint.OverHosts,
		`{"a": 1}.all(object, config, object == "a" && config == 1) && .host.name != ""`: constraint.OverHosts,
		`[[host]].size() == 1 && {"a": target}.size() == 1`:                              constraint.OverAssignments,
		`workspace.name != "" && target.name != ""`:                                      constraint.OverDeploymentTargets,
		`has(object.spec)`: constraint.OverObjects,
	} {
		subjects := subjectsOf(computeFleet(t, shop))
		if got := checkRule(t, subjects, fleet.Constraint{Expression: expression}); got.Over != over {
			t.Errorf("%s is evaluated over %s, want %s", expression, got.Over, over)
		}
	}
}

func TestMessageExpressionWidensTheSubjectsOfARule(t *testing.T) {
	t.Parallel()
	result := checkRule(t, subjectsOf(computeFleet(t, shop)), fleet.Constraint{
		Expression: `!target.name.startsWith("site-all")`, MessageExpression: `assignment.key + " is of " + workspace.name`,
	})
	if result.Over != constraint.OverAssignments || result.Looked != 5 || result.Violated != 2 ||
		result.Violations[0].Message != "large/site-all is of web" {
		t.Errorf("%+v", result)
	}
}

func TestContentsAreNeededOnlyByRulesAboutThem(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{
		`host.name != ""`:                        false,
		`target.hosts.size() > 0`:                false,
		`config.size() > 0`:                      true,
		`assignment.config_version != ""`:        true,
		`"base" in assignment.config_containers`: true,
		`has(target.manifests.tag)`:              true,
		`object.kind != ""`:                      true,
		`secrets.size() > 0`:                     true,
		`made_by == "chart"`:                     true,
	} {
		program, findings := constraint.Compile([]fleet.Constraint{{Name: "rule", Expression: expression}})
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		if got := program.NeedsContents(); got != want {
			t.Errorf("%s: needs contents %t, want %t", expression, got, want)
		}
	}
}
