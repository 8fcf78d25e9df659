package provider_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// progressText returns the progress in the assignment and in flotilla_compliance.
func (r *rings) progressText(attributes map[string]any) string {
	r.t.Helper()
	read := mustReadCompliance(r.t, r.url, map[string]any{
		"fleet":    providertest.Call{Function: "fleet", Arguments: []any{ringFleet("2", nil)}},
		"feedback": map[string]any{}, "progress": attributes["progress"],
	})
	text, err := json.MarshalIndent([]any{attributes["progress"], attributes["rolling_out"], attributes["rolled_out"], read["rollouts"]}, "", " ")
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// Refreshes keep the progress despite new reports and foreign commits. A late apply stores the progress of its plan.
func TestProgressInRefreshDestroyAndLateApply(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.rollout["on_failure"], r.rollout["failed_for"] = "roll_back", "24h"
	commits := 0
	pushForeignCommit := func() {
		commits++
		repository{url: r.url, cloneURL: r.url}.change(t, "dev", func(folder string) {
			writeFile(t, filepath.Join(folder, "elsewhere.yaml"), "number: "+string(rune('0'+commits))+"\n")
		})
	}
	state := func() map[string]any { return r.w.State.Values(assignment) }
	checkRefresh := func(version string) {
		t.Helper()
		before := r.progressText(state())
		for verb, option := range map[string]providertest.Option{"a refresh": providertest.RefreshOnly(), "a destroy": providertest.Destroy()} {
			plan, diags := r.w.Plan(t.Context(), r.configuration(version), option)
			if diags.Err() != nil || verb == "a refresh" && !plan.Empty() {
				t.Errorf("%s: %v, %+v", verb, diags, plan)
			}
			if refreshed := plan.Refreshed(); verb == "a refresh" && r.progressText(refreshed.Values(assignment)) != before {
				t.Errorf("after %s: got progress %s, want %s", verb, r.progressText(refreshed.Values(assignment)), before)
			}
		}
		if _, diags := r.w.Apply(t.Context(), r.configuration(version), providertest.RefreshOnly()); diags.Err() != nil {
			t.Errorf("apply -refresh-only: %v", diags)
		}
		if now := r.progressText(state()); now != before {
			t.Errorf("after apply -refresh-only: got progress %s, want %s", now, before)
		}
	}
	applyLate := func(version, versions string) {
		t.Helper()
		plan, diags := r.w.Plan(t.Context(), r.configuration(version))
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		planned := r.progressText(assignmentAfter(plan))
		pushForeignCommit()
		if diags := r.w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
			t.Fatalf("the late apply fails: %v", diags)
		}
		if now := r.progressText(state()); now != planned || r.versions() != versions {
			t.Errorf("after the late apply: got progress %s and versions %s, want %s and %s", now, r.versions(), planned, versions)
		}
	}
	applyLate("2", "2 1 1")
	checkRefresh("2")
	r.report("canary", verdict.Ready)
	checkRefresh("2")
	applyLate("2", "2 2 1")
	r.report("canary", verdict.Ready)
	r.report("region", verdict.Failed)
	checkRefresh("2")
	applyLate("2", "2 2 1") // the failure does not last yet
	checkRefresh("2")
	r.now = r.now.Add(24 * time.Hour)
	applyLate("2", "1 1 1")
	checkRefresh("2")
	applyLate("3", "3 1 1")
	r.report("canary", verdict.Ready)
	checkRefresh("3")
	applyLate("3", "3 3 1")
	r.report("canary", verdict.Ready)
	r.report("region", verdict.Ready)
	applyLate("3", "3 3 3")
	r.report("canary", verdict.Ready)
	r.report("region", verdict.Ready)
	r.report("rest", verdict.Ready)
	applyLate("3", "3 3 3")
	if state()["rolled_out"] != true || state()["progress"] != "{}" {
		t.Errorf("the rollout is not complete: %s", r.progressText(state()))
	}
	checkRefresh("3")
}

func TestDriftDoesNotMoveProgress(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	before := r.progressText(r.w.State.Values(assignment))
	repository{url: r.url, cloneURL: r.url}.change(t, "dev", func(folder string) {
		writeFile(t, filepath.Join(folder, "clusters", "all", "canary", "app-core", "by-hand.yaml"), "kind: Hand\n")
	})
	plan, diags := r.w.Plan(t.Context(), r.configuration("2"), providertest.RefreshOnly())
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan.ExitCode != 2 {
		t.Errorf("a refresh does not find the change by hand: %+v", plan)
	}
	if refreshed := plan.Refreshed(); r.progressText(refreshed.Values(assignment)) != before {
		t.Errorf("after a change by hand: got progress %s, want %s", r.progressText(refreshed.Values(assignment)), before)
	}
}
