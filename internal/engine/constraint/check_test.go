package constraint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

func TestFailedEvaluationNamesItsCause(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, replace(t, shop, "LOG_LEVEL: info", "LOG_LEVEL: info, secret: hunter2, level: 7")))
	for _, test := range []struct{ expression, want string }{
		{`host.labels["site"] == "harbour"`, "cannot be evaluated at line 1, column 12: there is no key \"site\"; test with has() or `in`, or use `[?…].orValue(…)`"},
		{`host.labels.site == "harbour"`, "cannot be evaluated at line 1, column 12: there is no key \"site\"; test with has() or `in`, or use `[?…].orValue(…)`"},
		{`config.missing == 1`, "cannot be evaluated at line 1, column 7: there is no key \"missing\"; test with has() or `in`, or use `[?…].orValue(…)`"},
		{`config.db.host.port == 1`, "cannot be evaluated at line 1, column 15: there is no key \"port\"; test with has() or `in`, or use `[?…].orValue(…)`"},
		{`config[config.secret] == 1`, "cannot be evaluated at line 1, column 7: there is no such key; test with has() or `in`, or use `[?…].orValue(…)`"},
		{`config.hosts[7] == "a"`, "cannot be evaluated at line 1, column 13: an index is out of bounds"},
		{`config.secret > 1`, "cannot be evaluated at line 1, column 15: a function or operator does not take values of these types"},
		{`int(config.secret) > 1`, "cannot be evaluated at line 1, column 4: a value cannot be converted"},
		{`quantity(config.secret).isInteger()`, "cannot be evaluated at line 1, column 9: a function does not take this value"},
		{`semver(config.secret).major() == 1`, "cannot be evaluated at line 1, column 7: a function does not take this value"},
		{`"abc".matches(config.secret + "(")`, "cannot be evaluated at line 1, column 14: a function does not take this value"},
		{`1 / (config.level - 7) == 1`, "cannot be evaluated at line 1, column 3: division by zero"},
		{`9223372036854775807 + config.level > 0`, "cannot be evaluated at line 1, column 21: a number or an index is out of range"},
		{`dyn(host).lables.size() == 0`, "cannot be evaluated at line 1, column 10: there is no such field"},
		{`config.secret.charAt(99) == ""`, "cannot be evaluated at line 1, column 21: a number or an index is out of range"},
		{`config.missing.sort().size() == 0`, "cannot be evaluated at line 1, column 7: there is no key \"missing\"; test with has() or `in`, or use `[?…].orValue(…)`"},
		{`config.missing.sortBy(m, string(m)).size() == 0`, "cannot be evaluated at line 1, column 7: there is no key \"missing\"; test with has() or `in`, or use `[?…].orValue(…)`"},
		{`config.?missing.value() == 1`, "cannot be evaluated at line 1, column 22: an optional value that is absent is used"},
	} {
		result := checkRule(t, subjects, fleet.Constraint{Expression: test.expression, Message: "is not evaluated"})
		if result.Failed == 0 || len(result.Violations) == 0 || result.Holds() || !result.Enforced() {
			t.Errorf("%s: %+v", test.expression, result)
			continue
		}
		if got := result.Violations[0]; got.Message != test.want || !got.Failed {
			t.Errorf("%s: message %q, want %q", test.expression, got.Message, test.want)
		}
		if text := fmt.Sprintf("%+v", result); strings.Contains(text, "hunter2") {
			t.Errorf("%s reveals a value: %s", test.expression, text)
		}
	}
}

func TestUnknownValueIsPendingOnlyIfItDecides(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, replace(t, shop,
		`data: {LOG_LEVEL: debug, EAST: "yes"}`, `data: UNKNOWN`, `tag: latest}`, `tag: UNKNOWN}`)))
	for _, test := range []struct {
		expression                string
		passed, violated, pending int
		waitsFor                  string
	}{
		{`config.LOG_LEVEL == "info"`, 4, 0, 1, `config container "east"`},
		{`has(config.LOG_LEVEL)`, 4, 0, 1, `config container "east"`},
		{`"LOG_LEVEL" in config`, 4, 0, 1, `config container "east"`},
		{`config.?LOG_LEVEL.orValue("x") == "info"`, 4, 0, 1, `config container "east"`},
		{`config[?"LOG_LEVEL"].orValue("x") == "info"`, 4, 0, 1, `config container "east"`},
		{`config.?db.?host.hasValue()`, 4, 0, 1, `config container "east"`},
		{`config.all(k, k != "")`, 4, 0, 1, `config container "east"`},
		{`config.size() > 1 ? true : false`, 4, 0, 1, `config container "east"`},
		{`[config.LOG_LEVEL].exists(l, l == "info")`, 4, 0, 1, `config container "east"`},
		{`{"a": config.LOG_LEVEL}.a == "info"`, 4, 0, 1, `config container "east"`},
		{`config.hosts.sort() == ["a", "b"]`, 4, 0, 1, `config container "east"`},
		{`config.hosts.sortBy(h, string(h)) == ["a", "b"]`, 4, 0, 1, `config container "east"`},
		{`[target.manifests.tag, "b"].sort() != []`, 3, 0, 1, `the manifests of deployment target "site-one"`},
		{`host.name == "small" || config.LOG_LEVEL == "info"`, 5, 0, 0, ""},
		{`config.LOG_LEVEL == "info" || host.name == "small"`, 5, 0, 0, ""},
		{`host.name != "small" && config.LOG_LEVEL == "info"`, 4, 1, 0, ""},
		{`host.name == "small" ? true : config.LOG_LEVEL == "info"`, 5, 0, 0, ""},
		{`assignment.config_version.size() == 16`, 4, 0, 1, `config container "east"`},
		{`"base" in assignment.config_containers`, 5, 0, 0, ""},
		{`target.manifests.tag != "latest"`, 3, 0, 1, `the manifests of deployment target "site-one"`},
		{`has(target.manifests.tag) || true`, 4, 0, 0, ""},
		{`has(target.manifests.tag) == has(target.manifests.tag)`, 3, 0, 1, `the manifests of deployment target "site-one"`},
		{`target.?manifests.?tag.orValue("") != "latest"`, 3, 0, 1, `the manifests of deployment target "site-one"`},
		{`dyn(target).manifests.tag != "latest"`, 3, 0, 1, `the manifests of deployment target "site-one"`},
		{`target.config_as.size() == 1`, 3, 0, 1, `the manifests of deployment target "site-one"`},
		{`target.manifests.parameters.size() >= 0`, 3, 0, 1, `the manifests of deployment target "site-one"`},
		{`has(target.manifests)`, 4, 0, 0, ""},
		{`config.size() > 0 && target.manifests.tag != "latest"`, 3, 0, 2, `the manifests of deployment target "site-one"`},
	} {
		result := checkRule(t, subjects, fleet.Constraint{Expression: test.expression})
		if result.Passed != test.passed || result.Violated != test.violated || result.Undecided != test.pending || result.Failed != 0 ||
			len(result.WaitsFor) != test.pending {
			t.Errorf("%s: %+v", test.expression, result)
			continue
		}
		if test.pending > 0 && result.WaitsFor[0] != test.waitsFor {
			t.Errorf("%s waits for %q, want %q", test.expression, result.WaitsFor[0], test.waitsFor)
		}
	}
	objects := checkRule(t, subjects, fleet.Constraint{Expression: `object.kind != "ConfigMap" || object.data.LOG_LEVEL == "info"`})
	if objects.Undecided != 2 || objects.Failed != 0 || objects.Violated != 0 || objects.Passed < 10 {
		t.Errorf("%+v", objects)
	}
	bare := constraint.Subjects{Fleet: subjects.Fleet, Schedule: subjects.Schedule}
	for _, expression := range []string{`config.size() > 0`, `object.kind != ""`, `assignment.config_version != ""`, `"base" in assignment.config_containers`} {
		if result := checkRule(t, bare, fleet.Constraint{Expression: expression}); result.Looked != 5 || result.Undecided != 5 {
			t.Errorf("%s without values: %+v", expression, result)
		}
	}
}

func TestUnprintableMessageExpressionFallsBackToMessage(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(
		computeFleet(t, replace(t, shop, "LOG_LEVEL: info", `LOG_LEVEL: info, escape: "\u001b[31mred", lines: "a\nb", trojan: "a\u202eb"`)),
	)
	for _, test := range []struct{ messageExpression, message, want string }{
		{`"level " + config.LOG_LEVEL + " on " + host.name`, "unused", "level info on clusters/c1"},
		{`""`, "a message", "a message"},
		{`"  "`, "a message", "a message"},
		{`config.lines`, "a message", "a message"},
		{`config.escape`, "a message", "a message"},
		{`config.trojan`, "a message", "a message"},
		{`string(config.missing)`, "a message", "a message"},
		{`config.LOG_LEVEL + "` + strings.Repeat("x", 6000) + `"`, "a message", "a message"},
		{`lists.range(100000).map(i, string(i)).join(",")`, "a message", "a message"},
		{``, "a message\n  of two lines", "a message of two lines"},
		{`""`, "", "failed expression: config.size() == 0"},
		{``, "", "failed expression: config.size() == 0"},
	} {
		rule := fleet.Constraint{Expression: "config.size()\n  == 0", Message: test.message}
		if test.messageExpression != "" {
			rule.MessageExpression = strings.Replace(test.messageExpression, "config.lines", "string(config.lines)", 1)
			for _, key := range []string{"escape", "trojan"} {
				rule.MessageExpression = strings.Replace(rule.MessageExpression, "config."+key, "string(config."+key+")", 1)
			}
		}
		result := checkRule(t, subjects, rule)
		if result.Violated != 5 || result.Violations[0].Message != test.want {
			t.Errorf("%s: %+v", test.messageExpression, result.Violations)
		}
	}
}

func TestRuleAppliesToMatchedSubjects(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, shop))
	selector := func(expression string) *fleet.Selector { return &fleet.Selector{Expression: expression} }
	for _, test := range []struct {
		expression string
		match      fleet.ConstraintMatch
		want       string
	}{
		{`assignment.key == ""`, fleet.ConstraintMatch{}, "clusters/c1/site-one large/api-west large/db-main large/site-all small/site-all"},
		{`assignment.key == ""`, fleet.ConstraintMatch{Workspace: "web"}, "clusters/c1/site-one large/site-all small/site-all"},
		{`assignment.key == ""`, fleet.ConstraintMatch{WorkloadSelector: selector("tier=backend")}, "large/api-west"},
		{`assignment.key == ""`, fleet.ConstraintMatch{WorkloadSelector: selector("track=stable")}, ""},
		{`assignment.key == ""`, fleet.ConstraintMatch{WorkloadSelector: selector("workload=db")}, "large/db-main"},
		{`assignment.key == ""`, fleet.ConstraintMatch{DeploymentTargetSelector: selector("track=stable")}, "large/api-west large/db-main"},
		{`assignment.key == ""`, fleet.ConstraintMatch{DeploymentTargetSelector: selector("track=stable"), WorkloadSelector: selector("!tier")}, "large/db-main"},
		{`assignment.key == ""`, fleet.ConstraintMatch{ClusterTypeSelector: selector("size=large")}, "clusters/c1/site-one large/api-west large/db-main large/site-all"},
		{`assignment.key == ""`, fleet.ConstraintMatch{ClusterSelector: selector("size=large")}, "clusters/c1/site-one"},
		{`assignment.key == ""`, fleet.ConstraintMatch{ClusterSelector: selector("cluster=c2")}, ""},
		{`assignment.key == ""`, fleet.ConstraintMatch{ClusterTypeSelector: selector("size=small"), Workspace: "payments"}, ""},
		{`host.name == ""`, fleet.ConstraintMatch{ClusterTypeSelector: selector("region=west")}, "clusters/c1 large"},
		{`host.name == ""`, fleet.ConstraintMatch{ClusterSelector: &fleet.Selector{}}, "clusters/c1 clusters/c2"},
		{`target.name == ""`, fleet.ConstraintMatch{Workspace: "web"}, "site-all site-one"},
		{`workspace.name == ""`, fleet.ConstraintMatch{Workspace: "web"}, "web"},
		{`object.kind == ""`, fleet.ConstraintMatch{Kinds: []string{"ConfigMap"}, ClusterTypeSelector: selector("size=small")}, "ConfigMap prod-small-site-all/platform-config"},
		{`object.kind == ""`, fleet.ConstraintMatch{Kinds: []string{"v1/Namespace"}, ClusterTypeSelector: selector("size=small")}, "Namespace prod-small-site-all"},
		{`object.kind == ""`, fleet.ConstraintMatch{Kinds: []string{"kustomize.toolkit.fluxcd.io/Kustomization"}, ClusterTypeSelector: selector("size=small")}, "Kustomization flux-system/prod-small-site-all"},
		{`object.kind == ""`, fleet.ConstraintMatch{Kinds: []string{"kustomize.toolkit.fluxcd.io/v1/Kustomization"}, ClusterTypeSelector: selector("size=small")}, "Kustomization flux-system/prod-small-site-all"},
		{`object.kind == ""`, fleet.ConstraintMatch{Kinds: []string{"apps/Kustomization", "apps/v1/Namespace", "kustomization"}}, ""},
	} {
		result := checkRule(t, subjects, fleet.Constraint{Expression: test.expression, Match: test.match})
		var got []string
		for _, violation := range result.Violations {
			s := violation.Subject
			switch {
			case s.Object != "":
				got = append(got, s.Object)
			case s.Assignment != "":
				got = append(got, s.Assignment)
			default:
				got = append(got, s.Host+s.DeploymentTarget)
				if s.Host+s.DeploymentTarget == "" {
					got = []string{s.Workspace}
				}
			}
		}
		if strings.Join(got, " ") != test.want || result.Looked != len(got) {
			t.Errorf("%s %+v: %s", test.expression, test.match, got)
		}
	}
}

func TestSubjectHasAReadableName(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, shop))
	for expression, want := range map[string]string{
		`environment == ""`:                                  "the fleet",
		`workspace.name == "web"`:                            `workspace "payments"`,
		`host.name.startsWith("clusters/")`:                  `cluster type "large"`,
		`!host.name.startsWith("clusters/")`:                 `cluster "c1"`,
		`target.name != "db-main"`:                           `deployment target "db-main"`,
		`assignment.key != "large/db-main"`:                  `assignment "large/db-main"`,
		`object.kind != "Namespace" || host.name != "small"`: `assignment "small/site-all", Namespace prod-small-site-all (namespace.yaml)`,
		`object.kind != "ConfigMap" || host.name != "small"`: `assignment "small/site-all", ConfigMap prod-small-site-all/platform-config (platform-config.yaml)`,
	} {
		result := checkRule(t, subjects, fleet.Constraint{Expression: expression})
		if len(result.Violations) == 0 || result.Violations[0].Subject.String() != want {
			t.Errorf("%s: %v", expression, result.Violations)
		}
	}
}

func TestRuleFailsOnFilesThatCannotBeReadOrRendered(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, shop))
	subjects.Files = func(i int) ([]render.AssignmentFile, string, error) {
		switch i {
		case 0:
			return nil, "", errors.New("a template\nis wrong")
		case 1:
			return nil, "the GitOps repository", nil
		case 2:
			return []render.AssignmentFile{{Name: "a.yaml", Content: []byte("kind: Pod\napiVersion: v1\n---\na: [\n")}}, "", nil
		case 3:
			return []render.AssignmentFile{
				{
					Name: "list.json",
					Content: []byte(
						`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},{"apiVersion":"v1","kind":"Service"}]}`,
					),
				},
				{Name: "config.env", Content: []byte("A=b")}, {Name: "other.yaml", Content: []byte("a: b\n")}, {Name: "empty.yaml"},
			}, "", nil
		}
		return nil, "", nil
	}
	result := checkRule(t, subjects, fleet.Constraint{Expression: `object.kind == "Pod"`})
	var got []string
	for _, violation := range result.Violations {
		got = append(got, violation.Subject.String()+": "+violation.Message)
	}
	want := `assignment "clusters/c1/site-one": cannot be rendered: a template is wrong
assignment "large/db-main": a.yaml cannot be read
assignment "large/site-all", Service  (list.json): failed expression: object.kind == "Pod"`
	if strings.Join(got, "\n") != want || result.Looked != 6 || result.Passed != 2 || result.Violated != 1 || result.Failed != 2 ||
		result.Undecided != 1 ||
		result.WaitsFor[0] != "the GitOps repository" {
		t.Errorf("%+v\n%s", result, strings.Join(got, "\n"))
	}
}

func TestExpensiveEvaluationIsAnError(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range 500 {
		many[fmt.Sprintf("KEY_%d", i)] = strings.Repeat("x", 50)
	}
	data, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	subjects := subjectsOf(computeFleet(t, replace(t, shop, "{LOG_LEVEL: info,", strings.TrimSuffix(string(data), "}")+", LOG_LEVEL: info,")))
	for _, expression := range []string{
		`config.all(a, config.all(b, a != "none" || b != "none"))`,
	} {
		results := checkRules(
			t,
			subjects,
			fleet.Constraint{Name: "slow", Expression: expression + ` && host.name != ""`},
			fleet.Constraint{Name: "quick", Expression: `host.name != ""`},
		)
		slow, quick := results.Rules[1], results.Rules[0]
		if !strings.HasPrefix(slow.Error, "takes too long: one evaluation costs more than 200000") || slow.Holds() || slow.Looked != 0 ||
			len(slow.Violations) != 0 {
			t.Errorf("%.80s: %+v", expression, slow)
		}
		if !quick.Holds() || quick.Passed != 4 {
			t.Errorf("%+v", quick)
		}
	}
}

func TestExpensiveRuleOverTheFleetIsAnError(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint64]string{100: "takes too long: over the whole fleet it costs more than 100, the most; let match select less, or look at less in one evaluation", 1000: ""} {
		program, findings := constraint.Compile([]fleet.Constraint{{Name: "rule", Expression: `config.map(k, k).all(k, k != "none")`}})
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		results, err := program.WithFleetCost(limit).Check(context.Background(), subjectsOf(computeFleet(t, shop)))
		if err != nil {
			t.Fatal(err)
		}
		if got := results.Rules[0]; got.Error != want || got.Holds() != (want == "") || (got.Looked == 0) != (want != "") {
			t.Errorf("%+v", got)
		}
	}
}

func TestRuleCanReadThousandsOfHosts(t *testing.T) {
	t.Parallel()
	var types strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&types, "- {name: type-%d, labels: {region: r%d}}\n", i, i%5)
	}
	subjects := subjectsOf(computeFleet(t, replace(t, shop, "- {name: small, labels", types.String()+"- {name: small, labels")))
	for _, expression := range []string{
		`target.name != "site-all" || target.hosts.map(h, h.labels[?"region"].orValue("")).distinct().size() == 7`,
		`target.name != "site-all" || target.hosts.exists(h, h.labels[?"region"] != target.hosts[0].labels[?"region"])`,
		`target.name != "site-all" || target.hosts.filter(h, h.labels[?"region"].orValue("") == "r1").size() == 400`,
	} {
		if result := checkRule(t, subjects, fleet.Constraint{Expression: expression}); !result.Holds() || result.Passed != 4 {
			t.Errorf("%s: %+v", expression, result)
		}
	}
}

func TestFunctionsAreBoundedInMemoryAndTime(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, replace(t, shop, "LOG_LEVEL: info", "LOG_LEVEL: info, much: 1e999999999, small: 1E-99999999")))
	for expression, want := range map[string]string{
		`lists.range(9000000).size() > 0`: "the result is too large, or negative",
		`lists.range(2000).map(i, "x").join("").replace("x", "` + strings.Repeat("y", 10000) + `").size() > 0`: "its result would be too large",
		`lists.range(1000).map(i, "` + strings.Repeat("y", 10000) + `").join().size() > 0`:                     "its result would be too large",
		`sets.contains(lists.range(2000), lists.range(2000))`:                                                  "",
		`lists.range(20000).distinct().size() > 0`:                                                             "its result would be too large",
		`lists.range(5000).map(i, "xx").join().find("` + strings.Repeat("a?", 2000) + `") == ""`:               "",
		`quantity(string(config.much)).isGreaterThan(quantity("1"))`:                                           "its result would be too large",
		`quantity("1e-999999999") == quantity("1")`:                                                            "its result would be too large",
	} {
		result := checkRule(t, subjects, fleet.Constraint{Expression: expression + ` && config.size() > 0`})
		if want == "" { // the arguments alone exceed the limit
			if !strings.HasPrefix(result.Error, "takes too long: ") {
				t.Errorf("%.100s: %+v", expression, result)
			}
			continue
		}
		if result.Failed != 5 || !strings.HasSuffix(result.Violations[0].Message, ": "+want) {
			t.Errorf("%.100s: %+v", expression, result)
		}
	}
	if result := checkRule(t, subjects, fleet.Constraint{Expression: `!isQuantity("1e999999999") && isQuantity("1e3") && quantity("12e-3") == quantity("12m") && environment == "prod"`}); !result.Holds() {
		t.Errorf("%+v", result)
	}
}

func TestCheckStopsWithItsContext(t *testing.T) {
	t.Parallel()
	program, findings := constraint.Compile([]fleet.Constraint{{Name: "rule", Expression: `config.size() > 0`}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if results, err := program.Check(ctx, subjectsOf(computeFleet(t, shop))); !errors.Is(err, context.Canceled) || results != nil {
		t.Errorf("%v, %v", results, err)
	}
}

func TestCheckWithoutRulesReturnsNoResults(t *testing.T) {
	t.Parallel()
	if results := checkRules(t, subjectsOf(computeFleet(t, shop))); len(results.Rules) != 0 {
		t.Errorf("%+v", results)
	}
}
