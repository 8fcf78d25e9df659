package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestRolloutGoesFromStageToStageWithEvidence(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	plan := r.applyVersion("1", "1 1 1")
	if plan.Change(assignment).After["rolled_out"] != true {
		t.Errorf("without a change, the plan says %s", rolloutText(plan))
	}
	plan = r.applyVersion("2", "2 1 1")
	for _, want := range []string{`stage 1 of 3 "canary", 1 of 3 hosts`, countLine(changes.Counts{Hosts: 1, Changed: 1}), "waits for clusters to be ready", "false"} {
		if !strings.Contains(rolloutText(plan), want) {
			t.Errorf("the plan does not say %q: %s", want, rolloutText(plan))
		}
	}
	commits := git(t, r.url, "rev-list", "--count", "dev")
	if plan := r.applyVersion("2", "2 1 1"); !plan.Empty() {
		t.Errorf("evidence without a decision plans %s", rolloutText(plan))
	}
	r.report("canary", verdict.Progressing)
	if plan := r.applyVersion("2", "2 1 1"); !plan.Empty() || git(t, r.url, "rev-list", "--count", "dev") != commits {
		t.Errorf("evidence without a decision plans %s", rolloutText(plan))
	}
	r.report("canary", verdict.Ready)
	plan = r.applyVersion("2", "2 2 1")
	if want := fileLine("platform-config.yaml", "data.VERSION", "region/app-core", causeBy(changes.ByContainer, "all")); !strings.Contains(rolloutText(plan), want) {
		t.Errorf("the plan of a later stage does not say %q: %s", want, rolloutText(plan))
	}
	r.report("canary", verdict.Progressing) // the canary stays proven
	r.report("region", verdict.Ready)
	r.applyVersion("2", "2 2 2")
	r.report("rest", verdict.Ready)
	commits = git(t, r.url, "rev-list", "--count", "dev")
	plan = r.applyVersion("2", "2 2 2")
	if assignmentAfter(plan)["rolled_out"] != true || fmt.Sprint(assignmentAfter(plan)["rolling_out"]) != "map[]" ||
		git(t, r.url, "rev-list", "--count", "dev") != commits {
		t.Errorf("at the end, the plan says %s", rolloutText(plan))
	}
	if plan := r.applyVersion("2", "2 2 2"); !plan.Empty() {
		t.Errorf("after the rollout, the plan says %s", rolloutText(plan))
	}
}

func TestRolloutHaltsAndNewerContentMendsIt(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready)
	r.applyVersion("2", "2 2 1")
	r.report("region", verdict.Failed)
	if plan := r.applyVersion("2", "2 2 1"); !strings.Contains(rolloutText(plan), "state:failed") {
		t.Errorf("the plan of a halt says %s", rolloutText(plan))
	}
	r.expectWarning("2", "Rollout has failed", "1 cluster has failed")
	r.applyVersion("3", "3 2 1")
	r.report("canary", verdict.Ready)
	r.applyVersion("3", "3 3 1")
	r.report("region", verdict.Ready)
	r.applyVersion("3", "3 3 3")
}

func TestRolloutRollsBackAutomaticallyInOneCommit(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.rollout = ringRollout(map[string]any{"on_failure": "roll_back"})
	before := git(t, r.url, "rev-parse", "dev")
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready)
	r.applyVersion("2", "2 2 1")
	r.report("region", verdict.Failed)
	failed := git(t, r.url, "rev-parse", "dev")
	plan := r.applyVersion("2", "1 1 1")
	if got := git(t, r.url, "rev-parse", "dev^"); got != failed {
		t.Error("the rollback made more than one commit")
	}
	if changed := git(t, r.url, "diff", "--stat", before, "dev", "--", "clusters/all/canary", "clusters/all/region", "clusters/all/rest"); changed != "" {
		t.Errorf("the rollback left a difference:\n%s", changed)
	}
	for _, want := range []string{"failed and was rolled back", fileLine("platform-config.yaml", "data.VERSION", "canary/app-core, region/app-core", causeBy(changes.ByRollback, before[:8]))} {
		if !strings.Contains(rolloutText(plan), want) {
			t.Errorf("the plan does not say %q: %s", want, rolloutText(plan))
		}
	}
	r.report("canary", verdict.Ready)
	r.report("region", verdict.Ready)
	if plan := r.applyVersion("2", "1 1 1"); !plan.Empty() {
		t.Errorf("failed content is tried again: %s", rolloutText(plan))
	}
	r.expectWarning("2", "Rollout has failed", "it was rolled back")
	r.applyVersion("3", "3 1 1")
}

func TestRolloutGoesOnAfterALostState(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready)
	r.applyVersion("2", "2 2 1")
	r.w.Lose(assignment)
	plan := r.applyVersion("2", "2 2 1")
	for _, want := range []string{countLine(changes.Counts{Total: 3}), `at stage 2 of 3 "region", on 2 of 3 hosts`, "false"} {
		if !strings.Contains(rolloutText(plan), want) {
			t.Errorf("without a state, the plan does not say %q: %s", want, rolloutText(plan))
		}
	}
	r.report("region", verdict.Ready)
	r.report("canary", verdict.Ready)
	r.applyVersion("2", "2 2 2")
}

// Most scheduled runs plan no change, and people look at the plan first.
func TestAPlanThatChangesNothingNamesEachWait(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	r.expectWarning("2", "Rollout waits", "on 1 of 3 hosts: waits for clusters to be ready: 0 of 1 cluster is ready, 1 unknown")
	r.rollout["stages"].([]any)[1].(map[string]any)["approval"] = true
	r.report("canary", verdict.Ready)
	r.applyVersion("2", "2 1 1")
	r.expectWarning("2", "Rollout waits", "waits for an approval")
	r.rollout, r.further = nil, map[string]any{"holds": []any{map[string]any{"hosts": []any{"region"}, "reason": "audit"}}}
	r.applyVersion("2", "2 1 2")
	r.expectWarning("2", "Rollout waits", "waits for a hold: audit")
	r.further = nil
	r.applyVersion("2", "2 2 2")
	if plan, diags := r.w.Plan(t.Context(), r.configuration("2")); !plan.Empty() || diags.Has("Rollout waits") {
		t.Errorf("at the end, the plan says %v", diags)
	}
}

func TestHoldsKeepFoldersAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.rollout, r.further = nil, map[string]any{"holds": []any{map[string]any{"hosts": []any{"region"}, "reason": "audit"}}}
	plan := r.applyVersion("2", "2 1 2")
	if assignmentAfter(plan)["rolled_out"] != false || !strings.Contains(rolloutText(plan), "a hold") {
		t.Errorf("the plan says %s", rolloutText(plan))
	}
	r.further = nil
	if plan := r.applyVersion("2", "2 2 2"); assignmentAfter(plan)["rolled_out"] != true {
		t.Errorf("the plan says %s", rolloutText(plan))
	}
}

func TestWindowThatClosesBetweenPlanAndApplyWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	clock := &stoppedClock{now: r.now.Add(time.Hour)}
	r.w.Start = provider.StartAt(clock)
	start := r.now.Add(30 * time.Minute)
	r.rollout = ringRollout(map[string]any{"windows": []any{map[string]any{
		"kind": "allow", "schedule": fmt.Sprintf("%d %d * * *", start.Minute(), start.Hour()), "duration": "1h",
	}}})
	before := git(t, r.url, "rev-parse", "dev")
	configuration := r.configuration("2")
	plan, diags := r.w.Plan(t.Context(), configuration)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	clock.now = clock.now.Add(12 * time.Hour)
	if diags := r.w.ApplyPlan(t.Context(), plan); diags.Err() == nil ||
		!strings.Contains(diags.Err().Error(), "Windows have closed") {
		t.Errorf("the apply after the window says %v", diags.Err())
	}
	if git(t, r.url, "rev-parse", "dev") != before {
		t.Error("something was written")
	}
	clock.now = r.now
	r.now = r.now.Add(-time.Hour)
	r.applyVersion("2", "2 1 1")
	r.now = r.now.Add(12 * time.Hour)
	r.report("canary", verdict.Ready)
	if plan := r.applyVersion("2", "2 1 1"); !strings.Contains(rolloutText(plan), "waits for a window") {
		t.Errorf("outside the window, the plan says %s", rolloutText(plan))
	}
	if plan := r.applyVersion("2", "2 1 1"); !plan.Empty() {
		t.Errorf("outside the window, the second plan says %s", rolloutText(plan))
	}
}

func TestDriftWaitsForAWindow(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	windows := func(kind string) {
		r.rollout = ringRollout(map[string]any{"windows": []any{map[string]any{"kind": kind, "schedule": "0 0 29 2 *", "duration": "1m"}}})
	}
	windows("deny")
	r.applyVersion("1", "1 1 1")
	clone := repository{cloneURL: r.url}.clone(t, "dev")
	git(t, clone, "rm", "-q", "clusters/all/rest/app-core/namespace.yaml")
	git(t, clone, "commit", "-qm", "by hand")
	git(t, clone, "push", "-q")
	byHand := git(t, r.url, "rev-parse", "dev")
	windows("allow")
	plan, diags := r.w.Apply(t.Context(), r.configuration("1"))
	if diags.Err() != nil || git(t, r.url, "rev-parse", "dev") != byHand {
		t.Fatalf("outside the window, the apply says %v", diags)
	}
	if plan.Change(assignment).After["commit"] == (providertest.Unknown{}) || !strings.Contains(fmt.Sprint(diags), "Drift waits for a window") {
		t.Errorf("outside the window, the plan says %v", diags)
	}
	windows("deny")
	r.applyVersion("1", "1 1 1")
	if git(t, r.url, "rev-parse", "dev^") != byHand || r.tree("dev", "rest") != r.tree("dev^^", "rest") {
		t.Error("an open window does not repair the drift")
	}
}

func TestInvalidRolloutInputIsAnErrorAtItsAttribute(t *testing.T) {
	t.Parallel()
	evidence := func(change func(*observe.Evidence)) string {
		e := &observe.Evidence{
			About:    ringsAbout,
			Time:     time.Now().UTC(),
			Clusters: map[string]observe.ClusterEvidence{"canary": {Type: "canary", Status: verdict.Status{Verdict: verdict.Unknown}}},
			Trees:    map[string]map[string]string{},
		}
		change(e)
		return string(e.Marshal())
	}
	fine := evidence(func(*observe.Evidence) {})
	stages := func(stages ...any) map[string]any {
		return map[string]any{"rollout": map[string]any{"stages": stages}, "evidence": fine}
	}
	for name, test := range map[string]struct {
		further  map[string]any
		at, want string
	}{
		"no evidence":       {map[string]any{"rollout": ringRollout(nil)}, "evidence", "A rollout needs evidence"},
		"an empty document": {map[string]any{"rollout": ringRollout(nil), "evidence": "{}"}, "evidence", "is not what flotilla_compliance gives"},
		"of another format": {map[string]any{"rollout": ringRollout(nil), "evidence": strings.Replace(fine, `"format":"3"`, `"format":"9"`, 1)}, "evidence", `it has the format "9"`},
		"without an owner":  {map[string]any{"rollout": ringRollout(nil), "evidence": strings.Replace(fine, `"format":"3"`, `"format":"1"`, 1)}, "evidence", "use one version everywhere"},
		"of another fleet":  {map[string]any{"rollout": ringRollout(nil), "evidence": strings.ReplaceAll(fine, "canary", "somewhere")}, "evidence", "None of the clusters"},
		"of another assignment": {
			map[string]any{"rollout": ringRollout(nil), "evidence": evidence(func(e *observe.Evidence) { e.About.Owner = "edge" })}, "evidence",
			`The evidence is about the assignment "edge" of environment "dev", on branch "dev" at path "clusters/all". This is the assignment "dev" of`,
		},
		"of another environment": {
			map[string]any{"rollout": ringRollout(nil), "evidence": evidence(func(e *observe.Evidence) { e.About.Environment = "prod" })}, "evidence",
			`The evidence is about the assignment "dev" of environment "prod"`,
		},
		"of another branch": {
			map[string]any{"rollout": ringRollout(nil), "evidence": evidence(func(e *observe.Evidence) { e.About.Branch = "main" })}, "evidence", `on branch "main"`,
		},
		"of another path": {
			map[string]any{"rollout": ringRollout(nil), "evidence": evidence(func(e *observe.Evidence) { e.About.Path = "" })}, "evidence", `at path "". This is`,
		},
		"of another repository": {
			map[string]any{"rollout": ringRollout(nil), "evidence": evidence(func(e *observe.Evidence) { e.Tip = strings.Repeat("e", 40) })}, "evidence",
			`The evidence was gathered at a commit that branch "dev" of this repository does not have`,
		},
		"a misspelt key":                      {map[string]any{"rollout": map[string]any{"stage": []any{}}, "evidence": fine}, "rollout", `did you mean "stages"?`},
		"a misspelt host":                     {map[string]any{"rollout": map[string]any{"stages": []any{map[string]any{"name": "a", "hosts": []any{"canry"}}}}, "evidence": fine}, "rollout", `did you mean "canary"?`},
		"a hold with until, without evidence": {map[string]any{"holds": []any{map[string]any{"hosts": []any{"canary"}, "until": "2030-01-01T00:00:00Z"}}}, "holds", "set evidence"},
		"two stages with one name":            {stages(map[string]any{"name": "a", "hosts": []any{"canary"}}, map[string]any{"name": "a"}), "rollout", `stages: has two stages with the name "a"`},
		"an invalid percentage":               {stages(map[string]any{"name": "a", "percent": 101}), "rollout", "stages[\"a\"].percent"},
		"an invalid ready percentage":         {stages(map[string]any{"name": "a", "ready_percent": 0}), "rollout", "stages[\"a\"].ready_percent"},
		"a stage after the last one":          {stages(map[string]any{"name": "a"}, map[string]any{"name": "b"}), "rollout", `the stage "b" comes after "a", which takes all remaining hosts`},
		"a negative soak":                     {stages(map[string]any{"name": "a", "soak": "-5m"}), "rollout", "stages[\"a\"].soak"},
		"an invalid time zone": {map[string]any{"rollout": ringRollout(map[string]any{"windows": []any{map[string]any{
			"kind": "deny", "schedule": "0 0 * * *", "duration": "1h", "time_zone": "Europe/Atlantis",
		}}}), "evidence": fine}, "rollout", `windows[0].time_zone: "Europe/Atlantis" is not a time zone`},
		"an invalid approval":       {map[string]any{"rollout": ringRollout(map[string]any{"approvals": []any{"app-core"}}), "evidence": fine}, "rollout", "approvals[0]"},
		"a schedule without a date": {map[string]any{"rollout": ringRollout(map[string]any{"windows": []any{map[string]any{"kind": "deny", "schedule": "0 0 30 2 *", "duration": "1h"}}}), "evidence": fine}, "rollout", "names a date that does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := providertest.New(startProvider).
				Plan(t.Context(), assigned(bare(t), providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", nil)}}, test.further))
			if diags.Err() == nil || !strings.Contains(diags.Err().Error(), test.want) ||
				!strings.Contains(diags.Err().Error(), fmt.Sprintf("AttributeName(%q)", test.at)) {
				t.Errorf("the messages are %v", diags.Err())
			}
		})
	}
}

// A held host may leave the fleet before the hold is removed.
func TestAHoldWithoutAMatchIsAWarning(t *testing.T) {
	t.Parallel()
	holds := map[string]any{"holds": []any{map[string]any{"deployment_targets": []any{"app-cor"}, "hosts": []any{"canary"}}}}
	_, diags := providertest.New(startProvider).
		Plan(t.Context(), assigned(bare(t), providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", nil)}}, holds))
	if diags.Err() != nil || !diags.Has("Hold matches nothing") || !strings.Contains(fmt.Sprint(diags), `did you mean "app-core"?`) {
		t.Errorf("the messages are %v", diags)
	}
}

func TestAnOutdatedApprovalIsAWarning(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.rollout = ringRollout(map[string]any{"approvals": []any{"app-core@0123456789"}})
	_, diags := r.w.Apply(t.Context(), r.configuration("2"))
	if diags.Err() != nil || !strings.Contains(fmt.Sprint(diags), "is for content that is not wanted any more; remove the approval") ||
		r.versions() != "2 1 1" {
		t.Errorf("the messages are %v", diags)
	}
}

func TestAClockThatGoesBackwardsProvesNothing(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready)
	now := r.now
	r.now = now.Add(-48 * time.Hour)
	r.applyVersion("2", "2 1 1")
	r.now = now.Add(time.Hour)
	r.applyVersion("2", "2 2 1")
}

func TestStagesDoNotDelayARollback(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	first := git(t, r.url, "rev-parse", "dev")
	r.applyVersion("2", "2 1 1")
	r.further = map[string]any{"rollback_to": first}
	want := fileLine("platform-config.yaml", "data.VERSION", "canary/app-core", causeBy(changes.ByRollback, first[:8]))
	if plan := r.applyVersion("2", "1 1 1"); assignmentAfter(plan)["rolled_out"] != false || !strings.Contains(rolloutText(plan), want) {
		t.Errorf("the plan does not say %q: %s", want, rolloutText(plan))
	}
	r.further = nil
	r.applyVersion("2", "2 1 1") // starts at the first stage again
}

func TestRollbackToTheDeployedContentWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	tip := git(t, r.url, "rev-parse", "dev")
	r.further = map[string]any{"rollback_to": tip}
	if plan := r.applyVersion("2", "1 1 1"); assignmentAfter(plan)["rolled_out"] != false || git(t, r.url, "rev-parse", "dev") != tip {
		t.Errorf("the plan says %s", rolloutText(plan))
	}
	r.further = nil
	r.applyVersion("2", "2 1 1")
}

func TestRolloutGoesOnWhileOthersCommit(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready)
	configuration := r.configuration("2") // with evidence from before the commits of others
	commitForeignFiles(t, r.url, func(commits int64) bool { return commits == 3 })
	apply(t, r.w, configuration)
	if got := r.versions(); got != "2 2 1" {
		t.Errorf("deployed %q, want \"2 2 1\"", got)
	}
	if plan := r.applyVersion("2", "2 2 1"); !plan.Empty() {
		t.Errorf("after commits of others, the plan says %s", rolloutText(plan))
	}
}
