package provider_test

import (
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// A value has to be proven from the apply that gave it, however long the plan waited for its approval.
func TestAPlanThatIsAppliedLateCountsFromTheApply(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	stage := v.configuration("1.31").Resources[kubernetes].Attributes["stages"].([]any)[0].(map[string]any)
	stage["soak"] = "2h"
	v.given = map[string]any{"released": "1.30", "stages": []any{stage}}
	w := v.w.(*providertest.Workspace)
	plan, said := w.Plan(t.Context(), v.configuration("1.31"))
	if said.Err() != nil {
		t.Fatal(said)
	}
	v.clock.now = v.now.Add(24 * time.Hour)
	if said := w.ApplyPlan(t.Context(), plan); said.Err() != nil {
		t.Fatal(said)
	}
	if _, said := w.Plan(t.Context(), v.configuration("1.31")); !said.Has("Evidence is older than what was given") {
		t.Errorf("said is %s", said)
	}
	for _, c := range []struct {
		after time.Duration
		prod  string
	}{{23 * time.Hour, "1.30"}, {25 * time.Hour, "1.30"}, {27 * time.Hour, "1.31"}} {
		v.now = v.clock.now.Add(c.after - 24*time.Hour)
		v.expect("1.31", "1.31", c.prod, c.prod)
	}
}

// An empty fleet proves nothing: clusters that come back later are given what was released before, and a promotion lets nothing through.
func TestAFleetWithoutClustersProvesNothing(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.given["released"] = "1.30"
	v.runs("1.30", v.clusters...)
	v.expect("1.31", "1.31", "1.30", "1.30")
	clusters := v.clusters
	v.clusters = nil
	v.later()
	if state := v.expect("1.31"); state["proven"] != nil {
		t.Errorf("proven %v", state["proven"])
	}
	v.clusters = clusters
	v.later()
	v.expect("1.31", "1.31", "1.30", "1.30")
}

// In the middle of a rollout no other verb of Terraform gives a cluster anything, or forgets what it was given.
func TestOtherVerbsMoveNoRollout(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.given["released"], v.given["on_failure"], v.given["failed_for"] = "1.30", "roll_back", "0s"
	v.runs("1.30", v.clusters...)
	v.expect("1.31", "1.31", "1.30", "1.30")
	v.later()
	v.runs("1.31", "canary") // a run would go on
	w := v.w.(*providertest.Workspace)
	plan, said := w.Plan(t.Context(), v.configuration("1.31"), providertest.RefreshOnly())
	if said.Err() != nil || plan.ExitCode != 0 {
		t.Errorf("-refresh-only: %s, %v", said, plan.Change(kubernetes))
	}
	if plan, said := w.Plan(t.Context(), v.configuration("1.31"), providertest.Destroy()); said.Err() != nil || plan.Change(kubernetes).Action != providertest.Delete {
		t.Errorf("-destroy: %s", said)
	}
	v.facts["canary"] = evidence.ClusterFacts{Status: verdict.Status{Verdict: verdict.Progressing}, Facts: v.facts["canary"].Facts}
	const renamed = "flotilla_rollout.k8s"
	v.given["name"] = "k8s"
	configuration := v.configuration("1.31")
	configuration.Resources[renamed] = configuration.Resources[kubernetes]
	delete(configuration.Resources, kubernetes)
	if _, said = w.Apply(t.Context(), configuration, providertest.MovedBlock(kubernetes, renamed)); said.Err() != nil {
		t.Fatal(said)
	}
	if _, said = w.Apply(t.Context(), v.configuration("1.31"), providertest.MovedBlock(renamed, kubernetes)); said.Err() != nil {
		t.Fatal(said)
	}
	v.expect("1.31", "1.31", "1.30", "1.30")
	v.later()
	failed := v.facts["canary"]
	failed.Verdict = verdict.Failed
	v.facts["canary"] = failed
	v.expect("1.31", "1.30", "1.30", "1.30") // what it had before is still known
}
