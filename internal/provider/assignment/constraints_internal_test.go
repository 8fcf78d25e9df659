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
	run := func(release string, m *assignmentPrivate, entries map[string]string) (*operation, []string) {
		rules, err := fleetvalue.EntriesOf(entries, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		fleet := types.ObjectValueMust(map[string]attr.Type{"constraints": rules.Type(t.Context())}, map[string]attr.Value{"constraints": rules})
		o := &operation{
			connection: &connection.Connection{Release: release}, model: &model{Fleet: types.DynamicValue(fleet)}, private: m,
			result: rendering.Computation, rendering: rendering, current: m.Trees, diagnostics: &diag.Diagnostics{},
		}
		o.intent.After = m.Trees.Clone()
		o.checkConstraints(t.Context(), false)
		if o.diagnostics.HasError() {
			t.Fatal(o.diagnostics)
		}
		var evaluated []string
		for _, rule := range o.ruling.results.Rules {
			evaluated = append(evaluated, rule.Name)
		}
		return o, evaluated
	}
	rules := map[string]string{"a": kept, "b": other}
	o, evaluated := run("1.0.0", m, rules)
	if !slices.Equal(evaluated, []string{"a", "b"}) {
		t.Fatalf("at first %q are evaluated", evaluated)
	}
	m.Constraints = o.ruling.saved(m)

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
	o, _ = run("1.0.0", m, rules)
	o.intent.After = drifted.Trees
	o.checkConstraints(t.Context(), false)
	if got := len(o.ruling.results.Rules); got != 2 {
		t.Errorf("where a folder changes %d rules are evaluated", got)
	}
}
