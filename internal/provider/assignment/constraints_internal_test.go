package assignment

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Rules that were kept are not evaluated again while neither they nor what is rendered change: that is what makes a plan
// that changes nothing as fast with them as without.
func TestPassedRulesAreEvaluatedAgainOnlyAfterAChange(t *testing.T) {
	t.Parallel()
	const kept, other = `{"name":"a","expression":"host.name != ''","mode":"enforce"}`, `{"name":"b","expression":"target.name != ''","mode":"inform"}`
	m, rendering := remembered(t, 100)
	run := func(release string, before *assignmentPrivate, after folder.Trees, entries map[string]string) (savedRules, []string) {
		rules, err := fleetvalue.EntriesOf(entries, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		fleet := types.ObjectValueMust(map[string]attr.Type{"constraints": rules.Type(t.Context())}, map[string]attr.Value{"constraints": rules})
		goal := &fleetGoal{result: rendering.Computation, rendering: rendering}
		d := &decision{wanted: wanted{request: request{
			connection: &connection.Connection{Release: release}, model: &assignmentModel{Fleet: types.DynamicValue(fleet)},
			diagnostics: &diag.Diagnostics{},
			before:      deployment{isNew: true, private: before, trees: before.Trees},
		}, goal: goal}, after: after}
		outcome := checkConstraints(t.Context(), d)
		if d.diagnostics.HasError() {
			t.Fatal(d.diagnostics)
		}
		var evaluated []string
		for _, rule := range outcome.results.Rules {
			evaluated = append(evaluated, rule.Name)
		}
		return outcome.saved, evaluated
	}
	rules := map[string]string{"a": kept, "b": other}
	saved, evaluated := run("1.0.0", m, m.Trees, rules)
	if !slices.Equal(evaluated, []string{"a", "b"}) {
		t.Fatalf("at first %q are evaluated", evaluated)
	}
	m.Constraints = saved

	if _, evaluated = run("1.0.0", m, m.Trees, rules); len(evaluated) > 0 {
		t.Errorf("where nothing changed %q are evaluated", evaluated)
	}
	changed := map[string]string{"a": kept, "b": kept[:9] + "b" + kept[10:]}
	if _, evaluated = run("1.0.0", m, m.Trees, changed); !slices.Equal(evaluated, []string{"b"}) {
		t.Errorf("where one rule changed %q are evaluated", evaluated)
	}
	for name, release := range map[string]string{"another release": "1.0.1", "a local build": developmentRelease} {
		if _, evaluated = run(release, m, m.Trees, rules); !slices.Equal(evaluated, []string{"a", "b"}) {
			t.Errorf("by %s %q are evaluated", name, evaluated)
		}
	}
	drifted := m.Trees.Clone()
	first := m.Trees.Keys()[0]
	drifted[first.Host][first.DeploymentTarget] = "by hand"
	if _, evaluated = run("1.0.0", m, drifted, rules); len(evaluated) != 2 {
		t.Errorf("where a folder changes %q are evaluated", evaluated)
	}
}
