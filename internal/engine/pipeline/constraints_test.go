package pipeline_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func rules(expression string) map[string]string {
	return map[string]string{"a": `{"name":"a","expression":"` + expression + `"}`}
}

func TestFleetsOfOtherRulesComeToTheSame(t *testing.T) {
	var cache pipeline.Cache
	one, other := value(t), value(t)
	one.Constraints, other.Constraints = rules("host.name != ''"), rules("host.name == ''")
	first, found := cache.Compute(one)
	if len(found) > 0 {
		t.Fatal(found)
	}
	if second, _ := cache.Compute(other); second != first {
		t.Error("a fleet of other rules is computed anew")
	}
	if first.Fingerprint(destination, "1") != mustCompute(t, other).Fingerprint(destination, "1") {
		t.Error("rules are in the fingerprint of what is rendered")
	}
	for expression, holds := range map[string]bool{"host.name != ''": true, "host.name == ''": false} {
		results, found := first.Constraints(t.Context(), rules(expression), destination)
		if len(found) > 0 || len(results.Rules) != 1 || results.Rules[0].Holds() != holds {
			t.Errorf("%s: %v, %v", expression, results, found)
		}
		if again, _ := first.Constraints(t.Context(), rules(expression), destination); again != results {
			t.Errorf("%s is evaluated twice", expression)
		}
	}
}

func TestRulesAboutDocumentsSeeThoseOfTheirDestination(t *testing.T) {
	result := mustCompute(t, value(t))
	owner := rules("object.kind != 'Kustomization' || object.metadata.labels['flotilla.dev/owner'] == 'mine'")
	for name, holds := range map[string]bool{"mine": true, "yours": false} {
		results, found := result.Constraints(
			t.Context(),
			owner,
			pipeline.Destination{Owner: name, Repo: &folder.Location{URL: "x.git", Branch: "main"}},
		)
		if len(found) > 0 || results.Rules[0].Looked == 0 || results.Rules[0].Holds() != holds {
			t.Errorf("of %q: %v, %v", name, results, found)
		}
	}
}

func TestWhatOnlySchedulingKnowsLeavesOtherRulesOpen(t *testing.T) {
	whole := value(t)
	scheduled, _, found := pipeline.Schedule(whole)
	if len(found) > 0 {
		t.Fatal(found)
	}
	for expression, decided := range map[string]bool{
		"host.name != ''": true, "assignment.key != ''": true, "size(config) >= 0": false, "object.kind != ''": false,
	} {
		whole.Constraints = rules(expression)
		results, found := pipeline.ScheduledConstraints(t.Context(), whole, scheduled)
		if len(found) > 0 || results.Rules[0].Looked == 0 {
			t.Fatalf("%s: %v, %v", expression, results, found)
		}
		if got := results.Rules[0].Undecided == 0; got != decided {
			t.Errorf("%s is decided: %t", expression, got)
		}
	}
	whole.Constraints = rules("host.nam")
	if results, found := pipeline.ScheduledConstraints(t.Context(), whole, scheduled); results != nil || len(found) == 0 {
		t.Errorf("a rule that does not compile gives %v, %v", results, found)
	}
}

func mustCompute(t *testing.T, of fleet.Value) *pipeline.Computation {
	t.Helper()
	result, found := pipeline.Compute(of)
	if len(found) > 0 {
		t.Fatal(found)
	}
	return result
}
