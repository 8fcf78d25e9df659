package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// rule returns a constraint. further are pairs of attributes.
func rule(name, expression string, further ...any) map[string]any {
	constraint := map[string]any{"name": name, "expression": expression}
	for i := 0; i < len(further); i += 2 {
		constraint[further[i].(string)] = further[i+1]
	}
	return constraint
}

// withConstraints returns the constraints of a fleet.
func withConstraints(rules ...any) map[string]any { return map[string]any{"constraints": rules} }

// databaseContainers returns the config containers of the small fleet with another URL.
func databaseContainers(url any) map[string]any {
	return map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
		map[string]any{"name": "large", "labels": map[string]any{"cluster-type": "large"}, "data": map[string]any{"DATABASE_URL": url}},
	}}
}

func mergeMaps(fleets ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, further := range fleets {
		for key, value := range further {
			all[key] = value
		}
	}
	return all
}

func TestABrokenConstraintFailsThePlanAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule map[string]any
		want []string // texts of the error
	}{
		"of deployment targets": {
			rule("no-main", "target.manifests.branch != 'main'", "message", "Branches move: give a tag."),
			[]string{`Constraint "no-main" is violated by 2 of 2 deployment targets:`, `"app-core": Branches move: give a tag.`, `"app-edge": Branches move: give a tag.`},
		},
		"of assignments": {
			rule("not-there", "assignment.key != 'large/app-core'", "message_expression", "assignment.key + ' is not for ' + host.name"),
			[]string{`Constraint "not-there" is violated by 1 of 3 assignments:`, `large/app-core is not for large`},
		},
		"of values": {
			rule("no-mysql", "!has(config.DATABASE_URL) || !config.DATABASE_URL.startsWith('mysql:')"),
			[]string{`Constraint "no-mysql" is violated by 1 of 3 assignments:`, `"large/app-core"`},
		},
		"of hosts": {
			rule("used", "size(host.targets) > 0", "match", map[string]any{"cluster_type_selector": map[string]any{"expression": "!edge"}}),
			[]string{`Constraint "used" is violated by 1 of 2 hosts:`, `"spare"`},
		},
		"of documents": {
			rule("no-namespaces", "object.kind != 'Namespace'", "match", map[string]any{"kinds": []any{"Namespace"}}),
			[]string{`Constraint "no-namespaces" is violated by 3 of 3 objects:`, `"drone/app-core"`},
		},
		"that cannot be evaluated": {
			rule("careless", "config.DATABASE_URL.startsWith('mysql:')", "match", map[string]any{"cluster_type_selector": map[string]any{"match_labels": map[string]any{"edge": "true"}}}),
			[]string{`Constraint "careless" is violated by 2 of 2 assignments:`, `there is no key "DATABASE_URL"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			w := providertest.New(startProvider)
			_, diags := w.Apply(t.Context(), assigned(url, fleetOf(withConstraints(test.rule, rule("true", "environment == 'dev'"))), nil))
			if diags.Err() == nil {
				t.Fatal("the apply succeeded")
			}
			for _, want := range test.want {
				if !strings.Contains(diags.String(), want) {
					t.Errorf("the error does not say %q: %s", want, diags)
				}
			}
			if count := strings.Count(diags.String(), "Constraint is violated"); count != 1 {
				t.Errorf("%d errors: %s", count, diags)
			}
			if _, err := os.Stat(url); err == nil {
				t.Error("a repository exists")
			}
			test.rule["mode"] = "inform"
			apply(t, w, assigned(url, fleetOf(withConstraints(test.rule)), nil))
			if plan := apply(t, w, assigned(url, fleetOf(withConstraints(test.rule)), nil)); !plan.Empty() {
				t.Errorf("the second plan has %q", linesOf(plan))
			}
		})
	}
}

func TestEveryBrokenConstraintIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(withConstraints(
		rule("a", "target.manifests.branch != 'main'"), rule("b", "host.name != 'drone'"), rule("c", "environment == 'prod'"),
	)), nil))
	for _, want := range []string{`Constraint "a" is violated by 2 of 2 deployment targets`, `Constraint "b" is violated by 1 of 3 hosts`, `Constraint "c" is violated by the fleet`} {
		if !strings.Contains(diags.String(), want) {
			t.Errorf("the errors do not say %q: %s", want, diags)
		}
	}
}

func TestInvalidConstraintsAreErrorsAtPlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule map[string]any
		want string
	}{
		"invalid CEL":                 {rule("a", "target.name =="), `constraints["a"].expression: `},
		"no boolean":                  {rule("a", "target.name"), `constraints["a"].expression: `},
		"an unknown field":            {rule("a", "target.nam == 'x'"), `constraints["a"].expression: `},
		"an unknown name":             {rule("a", "targte.name == 'x'"), `constraints["a"].expression: `},
		"too long":                    {rule("a", "environment == '"+strings.Repeat("x", 20_000)+"'"), `constraints["a"].expression: `},
		"a message that is no string": {rule("a", "true", "message_expression", "1"), `constraints["a"].message_expression: `},
		"another mode":                {rule("a", "true", "mode", "warn"), `constraints["a"].mode: `},
		"another attribute":           {rule("a", "true", "severity", "high"), `constraints["a"].severity: unknown attribute`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := providertest.New(startProvider)
			_, diags := w.Plan(t.Context(), assigned(bare(t), fleetOf(withConstraints(test.rule, rule("b", "1"))), nil))
			if text := diags.String(); !strings.Contains(text, test.want) || !strings.Contains(text, `constraints["b"].expression: `) {
				t.Errorf("the fleet's error is %s", text)
			}
			if strings.Contains(test.want, "unknown attribute") { // the schema of the resource refuses these
				return
			}
			_, diags = w.Plan(
				t.Context(),
				providertest.Configuration{Resources: map[string]providertest.Resource{"flotilla_constraint.x": {Attributes: test.rule}}},
			)
			_, attribute, _ := strings.Cut(strings.TrimSuffix(test.want, ": "), ".")
			if text := diags.String(); diags.Err() == nil || !strings.Contains(text, attribute) {
				t.Errorf("the resource's error is %s", text)
			}
		})
	}
}

func TestAnInformingConstraintReportsChangedAssignmentsOnly(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	informs := withConstraints(rule("no-main", "target.manifests.branch != 'main' || assignment.host == ''", "mode", "inform"), rule("true", "true"))
	const line = `constraint "no-main" is violated by `
	for _, step := range []struct {
		name  string
		fleet map[string]any
		want  string // "" if there is no such line
	}{
		{"at first", informs, line + "3 assignments: drone/app-core, drone/app-edge, large/app-core"},
		{"where nothing changes", informs, ""},
		{"where one folder changes", mergeMaps(informs, databaseContainers("mysql://two")), line + "1 assignment: large/app-core"},
		{"where nothing changes again", mergeMaps(informs, databaseContainers("mysql://two")), ""},
	} {
		plan := apply(t, w, assigned(url, fleetOf(step.fleet), nil))
		lines := linesOf(plan)
		index := slices.IndexFunc(lines, func(got string) bool { return strings.HasPrefix(got, line) })
		if plan.Empty() != (step.want == "") || index < 0 != (step.want == "") || index >= 0 && lines[index] != step.want {
			t.Errorf("%s the lines are %q, want %q", step.name, lines, step.want)
		}
	}
}

func TestANewConstraintIsReportedOnceAndChangesNothingElse(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	head := git(t, url, "rev-parse", "dev")
	for _, step := range []struct {
		name  string
		rules []any
		want  []string
	}{
		{"new constraints", []any{rule("a", "target.name != ''"), rule("b", "object.kind != ''")}, []string{`constraints "a", "b" are new, and hold`}},
		{"a changed constraint", []any{rule("a", "target.name != ''", "message", "name it"), rule("b", "object.kind != ''")}, []string{`constraint "a" has changed, and holds`}},
		{"an informing constraint", []any{rule("a", "target.name == ''", "mode", "inform"), rule("b", "object.kind != ''")}, []string{
			`constraint "a" is violated by 2 deployment targets: app-core, app-edge`,
		}},
		{"a removed constraint", []any{rule("a", "target.name == ''", "mode", "inform")}, []string{`constraint "b" is no more`}},
		{"no constraints", nil, []string{`constraint "a" is no more`}},
	} {
		fleet := fleetOf(withConstraints(step.rules...))
		plan := apply(t, w, assigned(url, fleet, nil))
		if got := linesOf(plan); !slices.Equal(got, step.want) {
			t.Errorf("%s: the lines are %q, want %q", step.name, got, step.want)
		}
		if change := plan.Change(assignment); change.Action != providertest.Update || fmt.Sprint(change.After["commit"]) != head {
			t.Errorf("%s: the action is %s, the commit %v", step.name, change.Action, change.After["commit"])
		}
		if plan := apply(t, w, assigned(url, fleet, nil)); !plan.Empty() {
			t.Errorf("%s: the second plan has %q", step.name, linesOf(plan))
		}
	}
	if now := git(t, url, "rev-parse", "dev"); now != head {
		t.Error("something was committed")
	}
}

func TestARepairedFleetIsApplied(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	rules := withConstraints(rule("no-mysql", "!has(config.DATABASE_URL) || !config.DATABASE_URL.startsWith('mysql:')"))
	apply(t, w, assigned(url, fleetOf(databaseContainers("mysql://one")), nil))
	for range 2 {
		if _, diags := w.Apply(t.Context(), assigned(url, fleetOf(mergeMaps(rules, databaseContainers("mysql://one"))), nil)); diags.Err() == nil {
			t.Fatal("a constraint that existing folders violate is not enforced")
		}
	}
	repaired := assigned(url, fleetOf(mergeMaps(rules, databaseContainers("postgres://one"))), nil)
	apply(t, w, repaired)
	if plan := apply(t, w, repaired); !plan.Empty() {
		t.Errorf("the second plan has %q", linesOf(plan))
	}
	if _, diags := w.Apply(t.Context(), assigned(url, fleetOf(mergeMaps(rules, databaseContainers("mysql://two"))), nil)); diags.Err() == nil {
		t.Error("the constraint can be violated again")
	}
}

func TestConstraintsHoldNeitherRemovalNorRollbackNorDestroy(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	first := git(t, url, "rev-parse", "dev")
	apply(t, w, assigned(url, fleetOf(databaseContainers("mysql://two")), nil))

	broken := mergeMaps(databaseContainers("mysql://two"), withConstraints(rule("no-main", "target.manifests.branch != 'main'")))
	fewer := mergeMaps(broken, map[string]any{"target_policies": []any{
		policy("core", map[string]any{"expression": "!edge"}, map[string]any{"expression": "edge=true"}),
		policy("core-on-large", map[string]any{"expression": "!edge"}, map[string]any{"match_labels": map[string]any{"size": "large"}}),
	}})
	_, diags := w.Apply(t.Context(), assigned(url, fleetOf(fewer), nil))
	if diags.Err() != nil || !strings.Contains(diags.String(), "only removes folders or rolls back") {
		t.Errorf("a removal is held: %s", diags)
	}
	if out := git(t, url, "ls-tree", "-r", "--name-only", "dev"); strings.Contains(out, "app-edge") {
		t.Errorf("nothing was removed: %s", out)
	}
	if _, diags := w.Plan(t.Context(), assigned(url, fleetOf(fewer), nil)); diags.Err() == nil {
		t.Error("the remaining folders are not held to the constraint")
	}
	back := assigned(url, fleetOf(fewer), map[string]any{"rollback_to": first})
	apply(t, w, back)
	if plan := apply(t, w, back); !plan.Empty() {
		t.Errorf("after a rollback, the plan has %q", linesOf(plan))
	}
	// Terraform plans the configuration before a destroy, unless -refresh=false is set.
	apply(t, w, assigned(url, fleetOf(broken), nil), providertest.Destroy(), providertest.SkipRefresh())
	if len(w.State) > 0 {
		t.Errorf("a destroy leaves %v", w.State)
	}
}

func TestUnknownValuesAreHeldToConstraintsAtApply(t *testing.T) {
	t.Parallel()
	const expression = "!has(config.DATABASE_URL) || !config.DATABASE_URL.startsWith('mysql:')"
	later := func(value string) providertest.Unknown { return providertest.Unknown{Then: value} }
	for name, test := range map[string]struct {
		fleet  map[string]any
		broken bool
		want   string // text of the plan
	}{
		"a value that keeps a rule":        {mergeMaps(withConstraints(rule("a", expression)), databaseContainers(later("postgres://x"))), false, `constraint "a" cannot be decided yet for 1 assignment: it waits for `},
		"a value that breaks a rule":       {mergeMaps(withConstraints(rule("a", expression)), databaseContainers(later("mysql://x"))), true, `constraint "a" cannot be decided yet`},
		"a value in a document":            {mergeMaps(withConstraints(rule("a", "!has(object.data) || !object.data.exists(key, object.data[key].contains('mysql:'))")), databaseContainers(later("mysql://x"))), true, `constraint "a" cannot be decided yet`},
		"a rule that is kept":              {withConstraints(rule("a", "true"), map[string]any{"name": "b", "expression": later("host.name != ''")}), false, `constraint "b" is not known yet`},
		"a rule that is broken":            {withConstraints(map[string]any{"name": "b", "expression": later("host.name == ''")}), true, `constraint "b" is not known yet`},
		"a rule that does not compile":     {withConstraints(map[string]any{"name": "b", "expression": later("host.nam")}), true, `constraint "b" is not known yet`},
		"a rule of another name is broken": {withConstraints(map[string]any{"name": later("b"), "expression": "host.name == ''"}), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			w := providertest.New(startProvider)
			plan, diags := w.Plan(t.Context(), assigned(url, fleetOf(test.fleet), nil))
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			if lines := diags.String() + strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, test.want) {
				t.Errorf("the plan says %s", lines)
			}
			diags = w.ApplyPlan(t.Context(), plan)
			if broken := diags.Err() != nil; broken != test.broken {
				t.Fatalf("the apply says %s", diags)
			}
			if _, err := os.Stat(url); (err == nil) == test.broken {
				t.Errorf("written: %t", err == nil)
			}
		})
	}
}

func TestAnImportWithConstraintsPlansNothing(t *testing.T) {
	t.Parallel()
	url := bare(t)
	configuration := assigned(url, fleetOf(withConstraints(rule("a", "target.name != ''"), rule("b", "host.name == ''", "mode", "inform"))), nil)
	apply(t, providertest.New(startProvider), configuration)
	w := providertest.New(startProvider)
	if diags := w.Import(t.Context(), configuration, assignment, fmt.Sprintf("%s#dev:clusters/all:dev", url)); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan := apply(t, w, configuration); !plan.Empty() {
		t.Errorf("the plan has %q: %v", linesOf(plan), plan.Change(assignment))
	}
}

func TestConstraintsWithRealTools(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			config := func(database, mode string) string {
				return small{before: requiredProviders + fmt.Sprintf(`
resource "terraform_data" "database" {
  input = %q
}

resource "flotilla_constraint" "no_mysql" {
  name       = "no-mysql"
  expression = "!has(config.DATABASE_URL) || !config.DATABASE_URL.startsWith('mysql:')"
  mode       = %q
}
`, database, mode), database: "terraform_data.database.output", fleet: "constraints = [flotilla_constraint.no_mysql]"}.config(repository{url: url})
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": config("mysql://one", "enforce")})

			// Values known only at apply are checked there, and nothing is written.
			w.run("plan", "-input=false", "-out=plan.out")
			if stdout, stderr, err := w.try("apply", "-input=false", "-no-color", "plan.out"); err == nil ||
				!words(`Constraint "no-mysql" is violated by 1 of 3 assignments`).MatchString(stderr) {
				t.Errorf("the apply of a saved plan: %v\n%s%s", err, stdout, stderr)
			}
			if _, err := os.Stat(url); err == nil {
				t.Error("something was written")
			}
			if _, stderr, err := w.try("plan", "-input=false", "-no-color"); err == nil || !words("Constraint is violated").MatchString(stderr) {
				t.Errorf("the plan once it is known: %v\n%s", err, stderr)
			}

			// If the same rule informs, the plan lists the violation once.
			writeFile(t, filepath.Join(w.path, "main.tf"), config("mysql://one", "inform"))
			if printed := w.run("apply", "-input=false", "-auto-approve", "-no-color"); !words(
				`constraint \"no-mysql\" is violated by 1 assignment: large/app-core`,
			).MatchString(printed) {
				t.Errorf("the plan lists no violation:\n%s", printed)
			}
			w.run("plan", "-input=false", "-detailed-exitcode")

			// Enforced again, the rule fails the plan until the fleet is repaired.
			writeFile(t, filepath.Join(w.path, "main.tf"), config("mysql://one", "enforce"))
			if _, stderr, err := w.try("plan", "-input=false", "-no-color"); err == nil {
				t.Errorf("the rule is not enforced: %s", stderr)
			}
			writeFile(t, filepath.Join(w.path, "main.tf"), config("postgres://one", "enforce"))
			w.run("apply", "-input=false", "-auto-approve")
			w.run("plan", "-input=false", "-detailed-exitcode")

			writeFile(t, filepath.Join(w.path, "main.tf"), strings.Replace(config("postgres://one", "enforce"), "'mysql:'", "'postgres:'", 1))
			if _, stderr, err := w.try("destroy", "-input=false", "-auto-approve", "-no-color"); err == nil {
				t.Errorf("the destroy does not mention -refresh=false: does the tool not plan first? %s", stderr)
			}
			w.run("destroy", "-input=false", "-auto-approve", "-refresh=false")
		})
	}
}
