package provider_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The soak time of a value starts at its apply, however old the plan is.
func TestSoakTimeOfALatePlanStartsAtItsApply(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	stage := v.configuration("1.31").Resources[kubernetes].Attributes["stages"].([]any)[0].(map[string]any)
	stage["soak"] = "2h"
	v.overrides = map[string]any{"released": "1.30", "stages": []any{stage}}
	w := v.w.(*providertest.Workspace)
	plan, diags := w.Plan(t.Context(), v.configuration("1.31"))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	v.clock.now = v.now.Add(24 * time.Hour)
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
		t.Fatal(diags)
	}
	if _, diags := w.Plan(t.Context(), v.configuration("1.31")); !diags.Has("Evidence is older than the last values") {
		t.Errorf("the diagnostics are %s", diags)
	}
	for _, c := range []struct {
		age  time.Duration // of the plan
		prod string
	}{{23 * time.Hour, "1.30"}, {25 * time.Hour, "1.30"}, {27 * time.Hour, "1.31"}} {
		v.now = v.clock.now.Add(c.age - 24*time.Hour)
		v.applyAndExpect("1.31", "1.31", c.prod, c.prod)
	}
}

// An empty fleet proves nothing: returning clusters get the released value, and promotions stay closed.
func TestAFleetWithoutClustersProvesNothing(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.overrides["released"] = "1.30"
	v.reportVersion("1.30", v.clusters...)
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	clusters := v.clusters
	v.clusters = nil
	v.passHour()
	if state := v.applyAndExpect("1.31"); state["proven"] != nil {
		t.Errorf("got proven %v, want none", state["proven"])
	}
	v.clusters = clusters
	v.passHour()
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
}

// Other verbs of Terraform during a rollout neither give clusters values nor forget them.
func TestOtherVerbsMoveNoRollout(t *testing.T) {
	t.Parallel()
	v := newVersions(t)
	v.overrides["released"], v.overrides["on_failure"], v.overrides["failed_for"] = "1.30", "roll_back", "0s"
	v.reportVersion("1.30", v.clusters...)
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	v.passHour()
	v.reportVersion("1.31", "canary") // an apply would continue
	w := v.w.(*providertest.Workspace)
	plan, diags := w.Plan(t.Context(), v.configuration("1.31"), providertest.RefreshOnly())
	if diags.Err() != nil || plan.ExitCode != 0 {
		t.Errorf("-refresh-only reports %s: %v", diags, plan.Change(kubernetes))
	}
	if plan, diags := w.Plan(t.Context(), v.configuration("1.31"), providertest.Destroy()); diags.Err() != nil ||
		plan.Change(kubernetes).Action != providertest.Delete {
		t.Errorf("-destroy reports %s", diags)
	}
	v.facts["canary"] = evidence.ClusterFacts{Status: verdict.Status{Verdict: verdict.Progressing}, Facts: v.facts["canary"].Facts}
	const renamed = "flotilla_rollout.k8s"
	v.overrides["name"] = "k8s"
	configuration := v.configuration("1.31")
	configuration.Resources[renamed] = configuration.Resources[kubernetes]
	delete(configuration.Resources, kubernetes)
	if _, diags = w.Apply(t.Context(), configuration, providertest.MovedBlock(kubernetes, renamed)); diags.Err() != nil {
		t.Fatal(diags)
	}
	if _, diags = w.Apply(t.Context(), v.configuration("1.31"), providertest.MovedBlock(renamed, kubernetes)); diags.Err() != nil {
		t.Fatal(diags)
	}
	v.applyAndExpect("1.31", "1.31", "1.30", "1.30")
	v.passHour()
	failed := v.facts["canary"]
	failed.Verdict = verdict.Failed
	v.facts["canary"] = failed
	v.applyAndExpect("1.31", "1.30", "1.30", "1.30") // the former value is still known
}

// The configuration reads evidence itself. Other verbs do not advance the rollout, a saved plan uses its own evidence, and a destroy
// works without answers of the servers.
func TestOtherVerbsOnlyReadEvidence(t *testing.T) {
	t.Parallel()
	starts := map[string]func(*testing.T, providertest.Start) providertest.Runner{
		"stand-in": func(_ *testing.T, start providertest.Start) providertest.Runner { return providertest.New(start) },
	}
	if !simulated() {
		for name, tool := range tools(t) {
			starts[name] = func(t *testing.T, start providertest.Start) providertest.Runner {
				return providertest.NewTerraform(t, tool, "flotilla/flotilla", start)
			}
		}
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVersions(t)
			v.w = start(t, provider.StartAt(v.clock))
			clusters := &factClusters{region: map[string]string{"canary": "a", "prod-1": "a", "prod-2": "a"}, ready: true}
			prometheus := newPrometheusStandIn(t, func(string) string {
				return vectorResult(`"cluster":"canary"`, "0.1", `"cluster":"prod-1"`, "0.1", `"cluster":"prod-2"`, "0.1")
			})
			v.provider = map[string]any{"clusters": clusters.start(t)(v.clusters...)}
			v.overrides = map[string]any{"proof": "facts.region == value", "evidence": []any{
				providertest.Reading{DataSource: "flotilla_cluster_facts", Attribute: "evidence", Attributes: map[string]any{}},
				providertest.Reading{DataSource: "flotilla_measurements", Attribute: "evidence", Attributes: map[string]any{
					"fleet": v.fleet(), "checks": []any{newCheck(prometheus.URL, nil)},
				}},
			}}
			values := func() any { return v.state()["values"] }
			v.applyAndExpect("a", "a", "a", "a")
			v.applyAndExpect("b", "b", "a", "a")
			v.clock.now = v.clock.now.Add(time.Hour)
			clusters.setRegion("canary", "b") // an apply would continue
			before := values()
			plan, diags := v.w.Plan(t.Context(), v.configuration("b"), providertest.RefreshOnly())
			if diags.Err() != nil || plan.ExitCode != 0 {
				t.Errorf("-refresh-only reports %s, with exit code %d", diags, plan.ExitCode)
			}
			if plan, diags = v.w.Plan(t.Context(), v.configuration("b")); diags.Err() != nil {
				t.Fatal(diags)
			}
			prometheus.Close()
			for _, cluster := range v.clusters {
				clusters.setRegion(cluster, "")
			}
			for _, option := range []providertest.Option{providertest.RefreshOnly(), providertest.Destroy()} {
				if _, diags := v.w.Plan(t.Context(), v.configuration("b"), option); diags.Err() != nil || !reflect.DeepEqual(values(), before) {
					t.Errorf("without answers the plan reports %s, and the values are %v", diags, values())
				}
			}
			v.clock.now = v.clock.now.Add(24 * time.Hour)
			if diags := v.w.ApplyPlan(t.Context(), plan); diags.Err() != nil ||
				!reflect.DeepEqual(values(), map[string]any{"canary": "b", "prod-1": "b", "prod-2": "b"}) {
				t.Errorf("the late apply reports %s, and the values are %v", diags, values())
			}
			v.applyAndExpect("b", "b", "b", "b")
			// Labels of silent clusters are an error, which ends a destroy with a refresh.
			v.overrides["evidence"].([]any)[0].(providertest.Reading).Attributes["labels_from"] = map[string]any{"region": "region"}
			if _, diags = v.w.Plan(t.Context(), v.configuration("b"), providertest.Destroy()); !diags.Has("Labels of clusters are not known") {
				t.Errorf("-destroy reports %s", diags)
			}
			if plan, diags = v.w.Plan(t.Context(), v.configuration("b"), providertest.Destroy(), providertest.SkipRefresh()); diags.Err() != nil {
				t.Fatal(diags)
			}
			if diags := v.w.ApplyPlan(t.Context(), plan); diags.Err() != nil || len(v.w.Now()) > 0 {
				t.Errorf("the destroy reports %s, and the state has %v", diags, v.w.Now())
			}
		})
	}
}
