package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestUnknownEvidenceMakesThePlanUnknown(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	configuration := r.configuration("2")
	configuration.Resources[assignment].Attributes["evidence"] = providertest.Unknown{}
	plan, diags := r.w.Plan(t.Context(), configuration)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	if assignmentAfter(plan)["content"] != (providertest.Unknown{}) || assignmentAfter(plan)["rolling_out"] != (providertest.Unknown{}) {
		t.Errorf("the plan says %v", assignmentAfter(plan))
	}
}

func TestRolloutAcceptsEvidenceOfTheFormerNameAndLocation(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready)
	r.further = map[string]any{"name": "next"} // the evidence is about the assignment dev
	r.applyVersion("2", "2 2 1")
	r.further = map[string]any{"name": "other"}
	_, diags := r.w.Plan(t.Context(), r.configuration("2"))
	if diags.Err() == nil || !strings.Contains(diags.Err().Error(), `This is the assignment "other"`) {
		t.Errorf("after two renames, the error is %v", diags.Err())
	}
}

// Evidence lists no removed folders. The commit of the cluster shows that it has followed the removal.
func TestOnlyALaterCommitProvesARemoval(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	for _, cluster := range []string{"canary", "region", "rest"} {
		r.report(cluster, verdict.Ready)
	}
	emptyFleet := func() providertest.Configuration {
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
	hasFolder := func(host string) bool {
		return git(t, r.url, "ls-tree", "-d", "--name-only", "dev", "clusters/all/"+host+"/app-core") != ""
	}
	apply(t, r.w, emptyFleet())
	if hasFolder("canary") || !hasFolder("region") {
		t.Fatal("the removal does not begin at the first stage")
	}
	if apply(t, r.w, emptyFleet()); !hasFolder("region") {
		t.Error("a cluster that has not followed proves the removal")
	}
	r.report("canary", verdict.Ready)
	if apply(t, r.w, emptyFleet()); hasFolder("region") || !hasFolder("rest") {
		t.Error("a proven removal does not continue")
	}
}

func TestRolloutWarnsOfOutdatedEvidence(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.now = r.now.Add(-24 * time.Hour)
	_, diags := r.w.Plan(t.Context(), r.configuration("2"))
	if diags.Err() != nil || !strings.Contains(fmt.Sprint(diags), "Evidence is older than the deployed content") {
		t.Errorf("the plan says %v", diags)
	}
}
