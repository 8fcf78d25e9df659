package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// These tests play the guide on staged rollouts: windows of a stage, and removals.

func (s *guideRollout) setTime(day, hour, minute int) {
	s.clock.now = time.Date(s.clock.now.Year(), 1, day, hour, minute, 0, 0, time.UTC)
}

// notBefore returns the text of a plan for a full hour of a day in January.
func (s *guideRollout) notBefore(day, hour int) string {
	return fmt.Sprintf("not before %d-01-%02d %02d:00 UTC", s.clock.now.Year(), day, hour)
}

func TestTheGuideOnStagedRolloutsKeepsTheWindowsOfAStage(t *testing.T) {
	t.Parallel()
	s := newRolloutOfExample(t, nightsExample)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.report("ready", "canary-1")
	s.applyHourLater("2 1 1 1")
	s.expectText(`at stage 2 of 4 "europe", on 1 of 4 hosts: waits for a window: ` + s.notBefore(11, 21))
	if plan := s.applyHourLater("2 1 1 1"); !plan.Empty() {
		t.Errorf("a run without progress plans %s", s.planText)
	}
	s.expectText("waits for a window: " + s.notBefore(11, 21)) // a warning
	s.setTime(11, 19, 59)
	s.applyHourLater("2 1 1 1")
	s.applyAfter(time.Minute, "2 2 1 1") // 22:00 in Berlin
	s.report("ready", "europe-1")
	s.applyHourLater("2 2 1 1") // 7:00 in Tokyo
	s.expectText(`at stage 3 of 4 "asia", on 2 of 4 hosts: waits for a window: ` + s.notBefore(12, 13))
	s.setTime(12, 12, 30)
	s.applyHourLater("2 2 1 2")
	s.report("ready", "asia-1")
	s.setTime(12, 19, 0)
	s.applyHourLater("2 2 2 2") // america is in no stage

	// The plan is applied late.
	s.setVersion("3")
	s.applyHourLater("3 2 2 2")
	s.report("ready", "canary-1")
	s.setTime(12, 22, 0)
	plan, diags := s.w.Plan(t.Context(), s.configuration())
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	tip := s.tip()
	s.setTime(13, 3, 0) // 4:00 in Berlin
	if diags := s.w.ApplyPlan(t.Context(), plan); diags.Err() == nil || !diags.Has("Windows have closed") ||
		!strings.Contains(diags.Err().Error(), s.notBefore(13, 21)) ||
		s.tip() != tip {
		t.Errorf("an apply outside the window of its stage says %v", diags)
	}
	s.setVersion("4")
	s.setTime(13, 2, 0) // the window of europe is open; only the canary is written
	if plan, diags = s.w.Plan(t.Context(), s.configuration()); diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	s.setTime(13, 5, 0)
	if diags := s.w.ApplyPlan(t.Context(), plan); diags.Err() != nil || s.versions() != "4 2 2 2" {
		t.Errorf("an apply that writes only to open stages says %v, and deployed %s", diags, s.versions())
	}
}

func TestTheGuideOnStagedRolloutsRepairsWithinTheWindowsOfAStage(t *testing.T) {
	t.Parallel()
	s := newRolloutOfExample(t, nightsExample)
	editByHand := func(hosts ...string) {
		files := s.files()
		for _, host := range hosts {
			name := host + "/payments-live/reconciler.yaml"
			files[name] = strings.ReplaceAll(files[name], "v1", "v7")
		}
		s.world.commit("one", "prod", files)
	}
	editByHand("canary", "europe")
	s.applyHourLater("1 7 1 1")
	s.expectText("waits for a window: " + s.notBefore(11, 21))
	if plan := s.applyHourLater("1 7 1 1"); !plan.Empty() {
		t.Errorf("while the repair waits, a run plans %s", s.planText)
	}
	s.setTime(11, 20, 30)
	s.applyHourLater("1 1 1 1")
	s.expectEnd("europe-1", "1 1 1 1")

	editByHand("asia")
	s.setTime(12, 14, 0)
	plan, diags := s.w.Plan(t.Context(), s.configuration())
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	s.setTime(12, 20, 0)
	if diags := s.w.ApplyPlan(t.Context(), plan); diags.Err() == nil || !diags.Has("Windows have closed") || s.versions() != "1 1 1 7" {
		t.Errorf("a repair outside the window of its stage says %v, and deployed %s", diags, s.versions())
	}
}

func TestTheGuideOnStagedRolloutsRemovesLast(t *testing.T) {
	t.Parallel()
	const everywhere = `cluster_type_selector = {} }`
	without := func(region string) string {
		return fmt.Sprintf(`cluster_type_selector = { match_expressions = [{ key = "region", operator = "NotIn", values = [%q] }] } }`, region)
	}
	reportCluster := func(s *guideRollout, cluster string) { // reports about the whole cluster
		s.report("ready", cluster)
		delete(s.reports[cluster], "assignment")
	}
	moveToAmerica := func() *guideRollout { // from europe to america
		s := newGuideRollout(t)
		s.editHCL(everywhere, without("us"))
		reportCluster(s, "america-1")
		s.applyHourLater("1 1 - 1") // only removals
		s.expectText(`removal stage 1 of 1 "regions", on 1 of 1 host`)
		reportCluster(s, "america-1")
		s.applyHourLater("1 1 - 1")
		s.editHCL(without("us"), without("eu"))
		reportCluster(s, "europe-1")
		s.applyHourLater("1 1 1 1")
		s.expectText(`stage 1 of 1 "regions", on 1 of 2 hosts: waits for clusters to be ready`)
		return s
	}
	s := moveToAmerica()
	s.report("ready", "america-1")
	s.applyAfter(20*time.Minute, "1 1 1 1") // soak time
	s.applyAfter(20*time.Minute, "1 - 1 1")
	s.expectText(`removal stage 1 of 1 "regions", on 2 of 2 hosts`)
	reportCluster(s, "europe-1")
	if plan := s.applyHourLater("1 - 1 1"); prodAfter(plan)["rolled_out"] != true {
		t.Errorf("the rollout does not end: %s", s.planText)
	}

	s = moveToAmerica()
	s.report("failed", "america-1")
	s.reports["america-1"]["since"] = s.clock.now.Add(58 * time.Minute).Format(time.RFC3339)
	s.applyHourLater("1 1 1 1") // halt
	s.applyHourLater("1 1 - 1") // rollback; europe keeps its folder

	s = moveToAmerica()
	s.editHCL(rolloutAnchor, `expedite = ["payments-live"]`+"\n    "+rolloutAnchor)
	s.applyHourLater("1 - 1 1")
}

func TestTheGuideOnStagedRolloutsPrintsTheEarliestTime(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t, guideRegions, guideRegions+`, windows = [{ kind = "allow", schedule = "0 14 * * *", duration = "2h" }]`)
	s.setVersion("2")
	s.setTime(11, 13, 0)
	s.applyHourLater("2 1 1 1")
	s.applyHourLater("2 1 1 1")
	if strings.Contains(s.planText, "not before") { // the next step depends on a cluster
		t.Errorf("the plan says %s", s.planText)
	}
	s.setTime(11, 15, 30)
	s.report("ready", "canary-1")
	if plan := s.applyAfter(0, "2 1 1 1"); !plan.Empty() { // the canary soaks for an hour, then the window of the regions is closed
		t.Errorf("during the soak time, a run plans %s", s.planText)
	}
	s.expectText("waits for clusters to be ready: 0 of 1 cluster is ready, 1 soaking, " + s.notBefore(12, 14))
	s.setTime(12, 13, 0)
	s.applyHourLater("2 1 2 1")
}
