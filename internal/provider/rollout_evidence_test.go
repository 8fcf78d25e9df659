package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestEvidenceThatIsNotKnownYetPlansNothingThatItCannotKeep(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	configuration := r.configuration("2")
	configuration.Resources[assignment].Attributes["evidence"] = providertest.Unknown{}
	plan, diagnostics := r.w.Plan(t.Context(), configuration)
	if diagnostics.Err() != nil {
		t.Fatal(diagnostics.Err())
	}
	if assignmentAfter(plan)["content"] != (providertest.Unknown{}) || assignmentAfter(plan)["rolling_out"] != (providertest.Unknown{}) {
		t.Errorf("the plan says %v", assignmentAfter(plan))
	}
}

func TestRolloutTakesEvidenceOfTheFormerNameAndLocation(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready)
	r.further = map[string]any{"name": "next"} // the evidence is of dev
	r.applyVersion("2", "2 2 1")
	r.further = map[string]any{"name": "other"}
	_, diagnostics := r.w.Plan(t.Context(), r.configuration("2"))
	if diagnostics.Err() == nil || !strings.Contains(diagnostics.Err().Error(), `This is the assignment "other"`) {
		t.Errorf("two names later: %v", diagnostics.Err())
	}
}

// A folder that is gone is in no evidence: whether a cluster has followed, the commit tells that it has.
func TestRemovalIsProvenByNoCommitBeforeIt(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	for _, cluster := range []string{"canary", "region", "rest"} {
		r.report(cluster, verdict.Ready)
	}
	with := func() providertest.Configuration {
		configuration := r.configuration("1")
		configuration.Resources[assignment].Attributes["fleet"] = providertest.Call{
			Function: "fleet",
			Arguments: []any{ringFleet("1", map[string]any{
				"target_policies": []any{},
			})},
		}
		configuration.Resources[assignment].Attributes["protection"] = map[string]any{"allow_empty": true}
		return configuration
	}
	has := func(host string) bool {
		return git(t, r.url, "ls-tree", "-d", "--name-only", "dev", "clusters/all/"+host+"/app-core") != ""
	}
	apply(t, r.w, with())
	if has("canary") || !has("region") {
		t.Fatal("the removal does not begin at the first stage")
	}
	if apply(t, r.w, with()); !has("region") {
		t.Error("a cluster that has not followed proves the removal")
	}
	r.report("canary", verdict.Ready)
	if apply(t, r.w, with()); has("region") || !has("rest") {
		t.Error("a removal that is proven does not go on")
	}
}

func TestRolloutSaysThatEvidenceIsOlderThanWhatIsDeployed(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.now = r.now.Add(-24 * time.Hour)
	_, diagnostics := r.w.Plan(t.Context(), r.configuration("2"))
	if diagnostics.Err() != nil || !strings.Contains(fmt.Sprint(diagnostics), "Evidence is older than the deployed content") {
		t.Errorf("%v", diagnostics)
	}
}
