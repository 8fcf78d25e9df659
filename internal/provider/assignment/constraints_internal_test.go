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

// Passed rules are not evaluated again until they or the rendered files change, so an empty plan with rules is as fast as without.
func TestPassedRulesAreEvaluatedAgainOnlyAfterAChange(t *testing.T) {
	t.Parallel()
	const passed, informational = `{"name":"a","expression":"host.name != ''","mode":"enforce"}`, `{"name":"b","expression":"target.name != ''","mode":"inform"}`
	m, rendering := newPrivateState(t, 100)
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
	rules := map[string]string{"a": passed, "b": informational}
	saved, evaluated := run("1.0.0", m, m.Trees, rules)
	if !slices.Equal(evaluated, []string{"a", "b"}) {
		t.Fatalf("the first run evaluates %q", evaluated)
	}
	m.Constraints = saved

	if _, evaluated = run("1.0.0", m, m.Trees, rules); len(evaluated) > 0 {
		t.Errorf("a run without changes evaluates %q", evaluated)
	}
	changed := map[string]string{"a": passed, "b": passed[:9] + "b" + passed[10:]}
	if _, evaluated = run("1.0.0", m, m.Trees, changed); !slices.Equal(evaluated, []string{"b"}) {
		t.Errorf("a run with one changed rule evaluates %q", evaluated)
	}
	for name, release := range map[string]string{"another release": "1.0.1", "a local build": developmentRelease} {
		if _, evaluated = run(release, m, m.Trees, rules); !slices.Equal(evaluated, []string{"a", "b"}) {
			t.Errorf("a run of %s evaluates %q", name, evaluated)
		}
	}
	drifted := m.Trees.Clone()
	first := m.Trees.Keys()[0]
	drifted[first.Host][first.DeploymentTarget] = "by hand"
	if _, evaluated = run("1.0.0", m, drifted, rules); len(evaluated) != 2 {
		t.Errorf("a run with a changed folder evaluates %q", evaluated)
	}
}
