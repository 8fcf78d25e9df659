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

func TestRulesDoNotAffectTheComputation(t *testing.T) {
	var cache pipeline.Cache
	value, other := referenceValue(t), referenceValue(t)
	value.Constraints, other.Constraints = rules("host.name != ''"), rules("host.name == ''")
	first, found := cache.Compute(value)
	if len(found) > 0 {
		t.Fatal(found)
	}
	if second, _ := cache.Compute(other); second != first {
		t.Error("a fleet with other rules is computed again")
	}
	if first.Fingerprint(destination, "1") != mustCompute(t, other).Fingerprint(destination, "1") {
		t.Error("the fingerprint depends on rules")
	}
	for expression, holds := range map[string]bool{"host.name != ''": true, "host.name == ''": false} {
		results, found := first.Constraints(t.Context(), rules(expression), destination)
		if len(found) > 0 || len(results.Rules) != 1 || results.Rules[0].Holds() != holds {
			t.Errorf("%s: got %v, findings %v", expression, results, found)
		}
		if again, _ := first.Constraints(t.Context(), rules(expression), destination); again != results {
			t.Errorf("%s is evaluated twice", expression)
		}
	}
}

func TestRulesSeeTheDocumentsOfTheirDestination(t *testing.T) {
	result := mustCompute(t, referenceValue(t))
	owner := rules("object.kind != 'Kustomization' || object.metadata.labels['flotilla.dev/owner'] == 'mine'")
	for name, holds := range map[string]bool{"mine": true, "yours": false} {
		results, found := result.Constraints(
			t.Context(),
			owner,
			pipeline.Destination{Owner: name, Repo: &folder.Location{URL: "x.git", Branch: "main"}},
		)
		if len(found) > 0 || results.Rules[0].Looked == 0 || results.Rules[0].Holds() != holds {
			t.Errorf("owner %q: got %v, findings %v", name, results, found)
		}
	}
}

func TestRulesAboutContentAreUndecidedAfterScheduling(t *testing.T) {
	whole := referenceValue(t)
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
			t.Fatalf("%s: got %v, findings %v", expression, results, found)
		}
		if got := results.Rules[0].Undecided == 0; got != decided {
			t.Errorf("%s: got decided %t", expression, got)
		}
	}
	whole.Constraints = rules("host.nam")
	if results, found := pipeline.ScheduledConstraints(t.Context(), whole, scheduled); results != nil || len(found) == 0 {
		t.Errorf("an invalid rule: got %v, findings %v", results, found)
	}
}

func mustCompute(t *testing.T, value fleet.Value) *pipeline.Computation {
	t.Helper()
	result, found := pipeline.Compute(value)
	if len(found) > 0 {
		t.Fatal(found)
	}
	return result
}
