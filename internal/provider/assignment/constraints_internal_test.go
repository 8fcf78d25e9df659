package assignment

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
)

// Rules that were kept are not evaluated again while neither they nor what is rendered change: that is what makes a plan
// that changes nothing as fast with them as without.
func TestRulesThatWereKeptAreEvaluatedAgainOnlyWhenSomethingChanges(t *testing.T) {
	t.Parallel()
	const kept, other = `{"name":"a","expression":"host.name != ''","mode":"enforce"}`, `{"name":"b","expression":"target.name != ''","mode":"inform"}`
	m, rendering := remembered(t, 100)
	run := func(release string, m *assignmentPrivate, entries map[string]string) (*task, []string) {
		rules, err := fleetvalue.EntriesOf(entries, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		fleet := types.ObjectValueMust(map[string]attr.Type{"constraints": rules.Type(t.Context())}, map[string]attr.Value{"constraints": rules})
		task := &task{
			connection: &connection.Connection{Release: release}, model: &assignmentModel{Fleet: types.DynamicValue(fleet)}, private: m,
			result: rendering.Result, rendering: rendering, current: m.Trees, diagnostics: &diag.Diagnostics{},
		}
		task.intent.After = m.Trees.Clone()
		task.checkConstraints(t.Context(), false)
		if task.diagnostics.HasError() {
			t.Fatal(task.diagnostics)
		}
		var evaluated []string
		for _, rule := range task.ruling.results.Rules {
			evaluated = append(evaluated, rule.Name)
		}
		return task, evaluated
	}
	rules := map[string]string{"a": kept, "b": other}
	task, evaluated := run("1.0.0", m, rules)
	if !slices.Equal(evaluated, []string{"a", "b"}) {
		t.Fatalf("at first %q are evaluated", evaluated)
	}
	m.Constraints = task.ruling.remember(m)

	if _, evaluated = run("1.0.0", m, rules); len(evaluated) > 0 {
		t.Errorf("where nothing changed %q are evaluated", evaluated)
	}
	changed := map[string]string{"a": kept, "b": kept[:9] + "b" + kept[10:]}
	if _, evaluated = run("1.0.0", m, changed); !slices.Equal(evaluated, []string{"b"}) {
		t.Errorf("where one rule changed %q are evaluated", evaluated)
	}
	for name, release := range map[string]string{"another release": "1.0.1", "a local build": developmentRelease} {
		if _, evaluated = run(release, m, rules); !slices.Equal(evaluated, []string{"a", "b"}) {
			t.Errorf("by %s %q are evaluated", name, evaluated)
		}
	}
	drifted := *m
	drifted.Trees = m.Trees.Clone()
	first := m.Trees.Keys()[0]
	drifted.Trees[first.Host][first.DeploymentTarget] = "by hand"
	task, _ = run("1.0.0", m, rules)
	task.intent.After = drifted.Trees
	task.checkConstraints(t.Context(), false)
	if got := len(task.ruling.results.Rules); got != 2 {
		t.Errorf("where a folder changes %d rules are evaluated", got)
	}
}
