package provider_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// These tests play the guide on staged rollouts: failed changes, and decisions of people.

func TestTheGuideOnStagedRolloutsMendsAHalt(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(s *guideRollout, before string){
		"ready again":   func(s *guideRollout, _ string) { s.report("ready", "canary-1"); s.applyHourLater("2 1 2 1") },
		"newer content": func(s *guideRollout, _ string) { s.setVersion("3"); s.applyHourLater("3 1 1 1") },
		"rollback_to": func(s *guideRollout, before string) {
			s.editHCL("  rollout = {", fmt.Sprintf("  rollback_to = %q\n  rollout = {", before))
			s.applyHourLater("1 1 1 1")
			s.editHCL(regexp.MustCompile(`  rollback_to = .*\n`).FindString(s.hcl), "")
			s.applyHourLater("2 1 1 1") // from the first stage again
		},
		"expedite": func(s *guideRollout, _ string) {
			s.editHCL(rolloutAnchor, fmt.Sprintf("expedite = [%q]\n    ", s.contentID())+rolloutAnchor)
			s.applyHourLater("2 2 2 2")
		},
	} {
		for _, how := range []string{"failed", "stuck"} {
			t.Run(name+", "+how, func(t *testing.T) {
				playAlways(t, name+", "+how, "ready again, failed", "newer content, stuck", "rollback_to, failed", "expedite, stuck")
				t.Parallel()
				s := newGuideRollout(t, guideRollsBack, guideHalts)
				before := s.tip()
				s.setVersion("2")
				s.applyHourLater("2 1 1 1")
				if how == "failed" {
					s.report("failed", "canary-1")
				} else {
					s.report("progressing", "canary-1")
					s.applyHourLater("2 1 1 1")
					s.applyHourLater("2 1 1 1")
				}
				s.applyHourLater("2 1 1 1")
				s.expectText(map[string]string{"failed": "1 cluster has failed", "stuck": "1 cluster is not ready in time"}[how])
				mend(s, before)
			})
		}
	}
}

// reportFailed makes the canary report, in the next run, a failure of this duration.
func (s *guideRollout) reportFailed(since time.Duration) {
	s.t.Helper()
	s.report("failed", "canary-1")
	s.reports["canary-1"]["since"] = s.clock.now.Add(time.Hour - since).Format(time.RFC3339)
}

func TestTheGuideOnStagedRolloutsRollsBackALastingFailure(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t)
	before := s.files()
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.reportAndApply("canary-1", "2 1 2 1")
	s.reportFailed(4 * time.Minute)
	s.report("ready", "america-1")
	s.applyHourLater("2 1 2 1") // halts
	s.expectText("it is rolled back if that lasts until " + s.clock.now.Add(time.Minute).Format(time.RFC3339))
	commits := s.world.commits("one", "prod")
	s.applyAfter(time.Minute, "1 1 1 1")
	s.expectText("failed and was rolled back")
	if got := s.world.commits("one", "prod"); got != commits+1 {
		t.Error("the rollback made more than one commit")
	}
	hostFiles := func(files map[string]string) map[string]string {
		maps.DeleteFunc(files, func(name, _ string) bool {
			host, _, _ := strings.Cut(name, "/")
			return !slices.Contains([]string{"canary", "europe", "america", "asia"}, host)
		})
		return files
	}
	if after := hostFiles(s.files()); len(after) == 0 || !maps.Equal(hostFiles(before), after) {
		t.Errorf("the rollback left the hosts with %v", after)
	}
	retry := regexp.MustCompile(`add "([^"]+)" to approvals`).FindStringSubmatch(s.planText)
	if retry == nil {
		t.Fatalf("the plan prints no approval: %s", s.planText)
	}
	for _, cluster := range []string{"canary-1", "america-1"} {
		s.report("ready", cluster)
	}
	if plan := s.applyHourLater("1 1 1 1"); !plan.Empty() { // no second attempt
		t.Errorf("after the rollback, the plan has %s", s.planText)
	}
	s.w.Lose(prodAssignment)
	s.applyHourLater("1 1 1 1") // read from the records
	s.expectText("failed and was rolled back")
	s.editHCL(rolloutAnchor, fmt.Sprintf("approvals = [%q]\n    ", retry[1])+rolloutAnchor)
	s.applyHourLater("2 1 1 1")

	// Without the state, the records do not list the folders that the change added.
	s = newGuideRollout(t)
	s.editHCL("live = {", `late = {
          environment = "prod"
          manifests   = { repo = "https://git.example.com/late", branch = "main" }
        }
        live = {`)
	hasLate := func() bool { return s.hasFolder("canary/payments-late") }
	s.applyHourLater("1 1 1 1")
	s.report("ready", "canary-1")
	s.reports["canary-1 late"] = maps.Clone(s.reports["canary-1"])
	maps.Copy(s.reports["canary-1 late"], map[string]any{"assignment": "canary/payments-late", "verdict": "failed"})
	for _, wantLate := range []bool{false, false, true} { // rolled back, no second attempt, second attempt
		if wantLate {
			s.w.Lose(prodAssignment)
			delete(s.reports, "canary-1 late")
		}
		if s.applyHourLater("1 1 1 1"); hasLate() != wantLate {
			t.Errorf("the added folder exists: %v; the plan says %s", !wantLate, s.planText)
		}
	}

	// A failure shorter than failed_for only waits. Then it halts.
	s = newGuideRollout(t, guideRollsBack, guideHalts+"\n    failed_for = \"30m\"")
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.reportFailed(20 * time.Minute)
	s.applyHourLater("2 1 1 1")
	s.expectText("waits for clusters to be ready")
	s.applyAfter(10*time.Minute, "2 1 1 1")
	s.expectText("since this one failed")
}

func TestTheGuideOnStagedRolloutsRollsBackToProvenContent(t *testing.T) {
	t.Parallel()
	// Version 3 replaces version 2 before version 2 is proven.
	s := newGuideRollout(t)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.setVersion("3")
	s.applyHourLater("3 1 1 1")
	s.reportFailed(50 * time.Minute)
	s.applyHourLater("1 1 1 1")
	s.setVersion("4") // a change
	s.applyHourLater("4 1 1 1")

	// The cluster failed, but no assignment in particular.
	s = newGuideRollout(t)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.reportFailed(50 * time.Minute)
	delete(s.reports["canary-1"], "assignment")
	s.applyHourLater("2 1 1 1")
	s.expectText("said of no assignment in particular, so it is not rolled back")
}

func TestTheGuideOnStagedRolloutsLetsPeopleDecide(t *testing.T) {
	t.Parallel()
	approveContent := func(s *guideRollout) {
		s.editHCL(rolloutAnchor, fmt.Sprintf("approvals = [%q]\n    ", s.contentID())+rolloutAnchor)
	}
	t.Run("approval", func(t *testing.T) {
		t.Parallel()
		s := newGuideRollout(t, guideRegions, guideRegions+", approval = true")
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.reportAndApply("canary-1", "2 1 1 1")
		s.expectText(`waits for an approval: "` + s.contentID() + `"`)
		approveContent(s)
		s.setVersion("3") // not approved
		s.applyHourLater("3 1 1 1")
		s.reportAndApply("canary-1", "3 1 1 1")
		s.editHCL(regexp.MustCompile(`approvals = .*\n    `).FindString(s.hcl), "")
		approveContent(s)
		s.applyHourLater("3 1 3 1")
	})
	t.Run("expedite by a bare name", func(t *testing.T) {
		acceptancetest.Only(t)
		t.Parallel()
		s := newGuideRollout(t, rolloutAnchor, `expedite = ["payments-live"]`+"\n    "+rolloutAnchor)
		s.setVersion("2")
		s.applyHourLater("2 2 2 2")
		s.expectText(`Expedite "payments-live" applies to later content, too`)
		s.setVersion("3")
		s.applyHourLater("3 3 3 3")
	})
	t.Run("expedite of a content", func(t *testing.T) {
		acceptancetest.Only(t)
		t.Parallel()
		s := newGuideRollout(t, guideRegions, guideRegions+", approval = true")
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.editHCL(rolloutAnchor, fmt.Sprintf("expedite = [%q]\n    ", s.contentID())+rolloutAnchor)
		s.applyHourLater("2 2 2 2")
		s.setVersion("3")
		s.applyHourLater("3 2 2 2")
	})
	t.Run("holds", func(t *testing.T) {
		t.Parallel()
		s := newGuideRollout(t)
		until := s.clock.now.Add(150 * time.Minute).Format(time.RFC3339)
		s.editHCL("  rollout = {", fmt.Sprintf("  holds = [{ hosts = [\"canary\"], reason = \"audit\", until = %q }]\n  rollout = {", until))
		s.setVersion("2")
		s.applyHourLater("1 1 1 1")
		s.expectText("waits for a hold: audit, until " + until)
		s.applyHourLater("1 1 1 1")
		s.applyHourLater("2 1 1 1")
		s.editHCL(`hosts = ["canary"]`, `hosts = ["nowhere"]`)
		s.applyHourLater("2 1 1 1")
		s.expectText("Hold matches nothing")
		// Without until, a hold lasts until it is removed.
		s.editHCL(`hosts = ["nowhere"]`, `hosts = ["canary"]`, fmt.Sprintf(", until = %q", until), "")
		s.setVersion("3")
		s.applyHourLater("2 1 1 1")
		s.editHCL(`  holds = [{ hosts = ["canary"], reason = "audit" }]`+"\n", "")
		s.applyHourLater("3 1 1 1")
	})
	t.Run("rollback_to", func(t *testing.T) {
		t.Parallel()
		s := newGuideRollout(t, guideRegions, guideRegions+", approval = true")
		first := s.tip()
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.editHCL(
			"  rollout = {",
			fmt.Sprintf("  rollback_to = %q\n  rollout = {", first),
			`"0 0 24 12 *"`,
			`"0 0 11 1 *"`,
		) // also outside windows
		s.applyHourLater("1 1 1 1")
		s.editHCL(fmt.Sprintf("  rollback_to = %q\n", first), "", `"0 0 11 1 *"`, `"0 0 24 12 *"`)
		s.applyHourLater("2 1 1 1")
	})
	t.Run("a move", func(t *testing.T) {
		t.Parallel()
		s := newGuideRollout(t)
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.editHCL(`branch = "prod" }`, `branch = "elsewhere" }`)
		_, diags := s.w.Plan(t.Context(), s.configuration())
		if diags.Err() == nil || !diags.Has("Cannot move during a rollout") {
			t.Errorf("a move during a rollout says %v", diags)
		}
	})
}

func TestTheGuideOnStagedRolloutsKeepsItsWindows(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t)
	year := s.clock.now.Year()
	christmas := time.Date(year, 12, 23, 22, 30, 0, 0, time.UTC) // half an hour before midnight in Berlin
	s.clock.now = christmas
	s.setVersion("2")
	plan, diags := s.w.Plan(t.Context(), s.configuration())
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	tip := s.tip()
	s.clock.now = christmas.Add(time.Hour) // the window has closed
	if diags := s.w.ApplyPlan(t.Context(), plan); diags.Err() == nil || !diags.Has("Windows have closed") || s.tip() != tip {
		t.Errorf("an apply outside the window says %v", diags)
	}
	s.applyHourLater("1 1 1 1")
	s.expectText("waits for a window")
	s.editHCL(`windows = [`, `windows = [
      { kind = "allow", schedule = "0 0 * * *", duration = "24h" },`) // deny wins
	s.applyHourLater("1 1 1 1")
	s.editHCL(rolloutAnchor, `expedite = ["payments-live"]`+"\n    "+rolloutAnchor)
	s.applyHourLater("2 2 2 2")
	s.editHCL(`expedite = ["payments-live"]`+"\n    ", "")
	s.report("ready", "canary-1", "europe-1", "america-1", "asia-1")
	s.clock.now = christmas.AddDate(0, 0, 4)
	s.applyHourLater("2 2 2 2")
	s.setVersion("3")
	s.applyHourLater("3 2 2 2") // after 72 hours
	s.editHCL(`"0 0 24 12 *"`, `"0 0 28 12 *"`)
	s.report("failed", "canary-1")
	s.applyHourLater("2 2 2 2") // a rollback waits for no window
	s.expectText("failed and was rolled back")
}

func TestTheGuideOnStagedRolloutsWaitsForTheRequestOfTheStepBefore(t *testing.T) {
	t.Parallel()
	repo, server, user := giteaWithUser(t)
	w := providertest.New(startProvider)
	configuration := func(version string, further map[string]any) providertest.Configuration {
		maps.Copy(further, atRoot(repo))
		fleet := providertest.Call{Function: "fleet", Arguments: []any{ringFleet(version, nil)}}
		about := map[string]any{"name": "dev", "fleet": fleet, "gitops_repo": further["gitops_repo"], "feedback": map[string]any{}}
		further["evidence"] = providertest.Reading{DataSource: "flotilla_compliance", Attributes: about, Attribute: "evidence"}
		c := assigned(repo.url, fleet, further)
		c.Provider = map[string]any{"git": map[string]any{"token": user.Token}}
		return c
	}
	apply(t, w, configuration("1", map[string]any{}))
	proposed := configuration(
		"2",
		map[string]any{"rollout": ringRollout(nil), "delivery": map[string]any{"mode": "pull_request", "forge": "gitea"}},
	)
	apply(t, w, proposed)
	if plan, diags := mustPlan(t, w, proposed); !plan.Empty() {
		t.Errorf("while a request is open, the plan says %q %s", linesOf(plan), diags)
	}
	first := listPullRequests(t, server, user)
	if len(first) != 1 {
		t.Fatalf("got requests %+v, want one", first)
	}
	mergeRequest(t, server, user, first[0].Number, first[0].Head.SHA)
	apply(t, w, proposed)
	if all := listPullRequests(t, server, user); len(all) != 2 {
		t.Fatalf("after the merge, got requests %+v, want two", all)
	} else if content := repo.read(t, all[1].Head.Ref); !strings.Contains(content["region/app-core/platform-config.yaml"], "VERSION: \"2\"") || strings.Contains(content["rest/app-core/platform-config.yaml"], "VERSION: \"2\"") {
		t.Errorf("the second request has %v", content)
	}
}
