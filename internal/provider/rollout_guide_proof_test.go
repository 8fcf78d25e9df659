package provider_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// These tests play the guide on staged rollouts: the proof of a change.

func TestTheGuideOnStagedRolloutsSkipsUnaffectedStages(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	// Another deployment target reaches only the last stage.
	s.editHCL(
		"target_policies = [{",
		`target_policies = [{ name = "asia", deployment_target_selector = { match_labels = { only = "asia" } }, cluster_type_selector = { match_expressions = [{ key = "ring", operator = "DoesNotExist" }] } }, {`,
		`deployment_target_selector = {},`,
		`deployment_target_selector = { match_expressions = [{ key = "only", operator = "DoesNotExist" }] },`,
		"live = {",
		`late = {
          environment = "prod"
          labels      = { only = "asia" }
          manifests   = { repo = "https://git.example.com/late", branch = "main" }
        }
        live = {`,
	)
	s.applyHourLater("2 1 1 1")
	s.expectText(`payments-late`)
	if s.hasFolder("canary/payments-late") || !s.hasFolder("asia/payments-late") {
		t.Errorf("the added folder is on other hosts: %s", s.planText)
	}
}

func TestTheGuideOnStagedRolloutsCountsClustersAsItSays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edits    []string
		europe   string // verdict of europe; america is ready
		wantText string
		isPassed bool
	}{
		"half ready":          {replaceRegions(`, ready_percent = 50`), "progressing", "", true},
		"too few ready":       {replaceRegions(`, ready_percent = 51`), "progressing", "", false},
		"one failure allowed": {append(replaceRegions(`, max_failed = 1`), guideRollsBack, guideHalts), "failed", `passes stage 2 of 3 "regions" without 1 cluster: 1 failed`, true},
		"no failure allowed":  {append(replaceRegions(``), guideRollsBack, guideHalts), "failed", "waits for newer content, since this one failed: 1 cluster has failed", false},
		"one unknown":         {replaceRegions(``), "", "", false},
		"one unknown skipped": {append(replaceRegions(``), rolloutAnchor, `unknown = "skip"`+"\n    "+rolloutAnchor), "", `passes stage 2 of 3 "regions" without 1 cluster: 1 unknown`, true},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "too few ready", "one failure allowed", "one unknown skipped")
			t.Parallel()
			s := newGuideRollout(t, test.edits...)
			s.setVersion("2")
			s.applyHourLater("2 1 1 1")
			s.reportAndApply("canary-1", "2 2 2 1")
			s.report("ready", "america-1")
			delete(s.reports, "europe-1")
			if test.europe != "" {
				s.report(test.europe, "europe-1")
			}
			want := "2 2 2 1"
			if test.isPassed {
				want = "2 2 2 2"
			}
			s.applyHourLater(want)
			s.expectText(test.wantText)
		})
	}
}

func TestTheGuideOnStagedRolloutsKeepsContentProven(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t, guideRollsBack, guideHalts)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.reportAndApply("canary-1", "2 1 2 1")
	s.report("progressing", "canary-1") // the canary stays proven
	s.reportAndApply("america-1", "2 2 2 1")
	s.report("failed", "canary-1")
	s.reportAndApply("europe-1", "2 2 2 1")
	s.expectText(`1 cluster has failed at stage 1 of 3 "canary"`)
	s.report("ready", "canary-1") // the rollout continues by itself
	s.applyHourLater("2 2 2 2")
	s.report("failed", "canary-1")
	s.report("ready", "asia-1")
	if plan := s.applyHourLater("2 2 2 2"); prodAfter(plan)["rolled_out"] != false {
		t.Errorf("the rollout ends with a failed canary: %s", s.planText)
	}
	s.expectEnd("canary-1", "2 2 2 2")
}

func TestTheGuideOnStagedRolloutsEndsWithinItsLimits(t *testing.T) {
	t.Parallel()
	silent := []string{rolloutAnchor, `unknown = "skip"` + "\n    " + rolloutAnchor}
	for name, test := range map[string]struct {
		edits    []string
		verdict  string // of the canary; "" for no report
		hours    int    // further hours before the next stage
		wantText string
	}{
		"no reports":                     {silent, "", 2, `passes stage 1 of 3 "canary" without 1 cluster: 1 unknown`},
		"no reports, without a deadline": {[]string{guideLate, "    unknown = \"skip\"\n"}, "", 1, `passes stage 1 of 3 "canary" without 1 cluster: 1 unknown`},
		"all failed, as allowed":         {[]string{guideCanary, guideCanary + ", max_failed = 1"}, "failed", 0, `passes stage 1 of 3 "canary" without 1 cluster: 1 failed`},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "no reports")
			t.Parallel()
			s := newGuideRollout(t, test.edits...)
			s.setVersion("2")
			s.applyHourLater("2 1 1 1")
			delete(s.reports, "canary-1")
			if test.verdict != "" {
				s.report(test.verdict, "canary-1")
			}
			for range test.hours {
				s.applyHourLater("2 1 1 1")
			}
			s.applyHourLater("2 1 2 1")
			s.expectText(test.wantText)
		})
	}
	// Without unknown = "skip", a rollout waits for a silent cluster, which is stuck after the deadline.
	t.Run("a silent cluster with a deadline", func(t *testing.T) {
		t.Parallel()
		s := newGuideRollout(t, guideRollsBack, guideHalts)
		s.setVersion("2")
		delete(s.reports, "canary-1")
		s.applyHourLater("2 1 1 1")
		s.applyHourLater("2 1 1 1")
		s.applyHourLater("2 1 1 1")
		s.applyHourLater("2 1 1 1")
		s.expectText("since this one is stuck: 1 cluster is not ready in time")
	})
	t.Run("a silent cluster without a deadline", func(t *testing.T) {
		acceptancetest.Only(t)
		t.Parallel()
		s := newGuideRollout(t, guideLate, "")
		s.setVersion("2")
		delete(s.reports, "canary-1")
		for range 5 {
			s.applyHourLater("2 1 1 1")
		}
		s.expectText("waits for clusters to be ready")
	})
	t.Run("a cluster that leaves the fleet", func(t *testing.T) {
		t.Parallel()
		const dead = `{ name = "canary-2", cluster_type = "canary" },`
		s := newGuideRollout(t, guideLate, "", "clusters = [\n", "clusters = [\n"+dead+"\n")
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.reportAndApply("canary-1", "2 1 1 1")
		s.applyHourLater("2 1 1 1")
		s.expectText("waits for clusters to be ready")
		s.editHCL(dead, "")
		s.applyHourLater("2 1 2 1")
	})
	t.Run("a slow batch", func(t *testing.T) {
		t.Parallel()
		s := newGuideRollout(t, guideLate, "", "max_concurrent = 1", "max_concurrent = 1, ready_percent = 50")
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.reportAndApply("canary-1", "2 1 2 1")
		s.report("progressing", "america-1")
		s.applyHourLater("2 1 2 1")
		s.applyHourLater("2 2 2 1")
		s.reportAndApply("europe-1", "2 2 2 2")
		s.expectText(`passes stage 2 of 3 "regions" without 1 cluster: 1 not ready yet`)
	})
	t.Run("a stuck batch", func(t *testing.T) {
		acceptancetest.Only(t)
		t.Parallel()
		s := newGuideRollout(t, guideRollsBack, guideHalts, "max_concurrent = 1", "max_concurrent = 1, ready_percent = 50")
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.reportAndApply("canary-1", "2 1 2 1")
		s.report("progressing", "america-1")
		for range 3 {
			s.applyHourLater("2 1 2 1")
		}
		s.expectText("since this one is stuck: 1 cluster is not ready in time")
	})
	t.Run("a stuck batch, as allowed", func(t *testing.T) {
		acceptancetest.Only(t)
		t.Parallel()
		s := newGuideRollout(t, "max_concurrent = 1", "max_concurrent = 1, max_failed = 1")
		s.setVersion("2")
		s.applyHourLater("2 1 1 1")
		s.reportAndApply("canary-1", "2 1 2 1")
		s.report("progressing", "america-1")
		s.applyHourLater("2 1 2 1")
		s.applyHourLater("2 1 2 1")
		s.applyHourLater("2 2 2 1")
		s.reportAndApply("europe-1", "2 2 2 2")
		s.expectText(`passes stage 2 of 3 "regions" without 1 cluster: 1 stuck`)
	})
}

func TestTheGuideOnStagedRolloutsUsesTimeWithoutReports(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t)
	s.reports = nil // feedback = {} in the guide
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.expectText("waits for the soak time")
	s.applyHourLater("2 1 2 1")
	s.applyHourLater("2 2 2 1")
	s.applyHourLater("2 2 2 2")
	if plan := s.applyHourLater("2 2 2 2"); prodAfter(plan)["rolled_out"] != true {
		t.Errorf("the rollout does not end: %s", s.planText)
	}

	s = newGuideRollout(t, `      { name = "asia-1", cluster_type = "asia" },`+"\n", "")
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.expectText("Only time proves a change on asia, of which the fleet has no clusters")
	s.reportAndApply("canary-1", "2 1 2 1", "america-1", "2 2 2 1", "europe-1", "2 2 2 2")
	s.expectText("waits for the soak time")
	if plan := s.applyHourLater("2 2 2 2"); prodAfter(plan)["rolled_out"] != true {
		t.Errorf("the rollout does not end: %s", s.planText)
	}
}

// The clock stands still. Each run has evidence of an hour later.
func TestTheGuideOnStagedRolloutsGoesByTheTimeOfTheEvidence(t *testing.T) {
	t.Parallel()
	r := newRings(t)
	r.rollout = ringRollout(map[string]any{"stages": []any{map[string]any{"name": "canary", "hosts": []any{"canary"}, "soak": "1h"}}})
	r.applyVersion("2", "2 1 1")
	r.report("canary", verdict.Ready) // half an hour before the next evidence
	r.applyVersion("2", "2 1 1")
	r.applyVersion("2", "2 2 2")
}

func TestTheGuideOnStagedRolloutsRestartsWithNewContent(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.reportAndApply("canary-1", "2 1 2 1")
	s.setVersion("3")
	s.applyHourLater("3 1 2 1")
	s.reportAndApply("canary-1", "3 1 3 1", "america-1", "3 3 3 1", "europe-1", "3 3 3 3")
	s.expectEnd("asia-1", "3 3 3 3")

	// A new deployment target on existing hosts.
	s.editHCL("live = {", `late = {
          environment = "prod"
          manifests   = { repo = "https://git.example.com/late", branch = "main" }
        }
        live = {`)
	s.applyHourLater("3 3 3 3")
	for _, host := range []string{"canary", "europe", "america", "asia"} {
		if got := s.hasFolder(host + "/payments-late"); got != (host == "canary") {
			t.Errorf("%s has the added deployment target: %v", host, got)
		}
	}
}

func TestTheGuideOnStagedRolloutsWritesToJoiningHosts(t *testing.T) {
	t.Parallel()
	addHost := func(s *guideRollout, name string) {
		s.editHCL(`{ name = "asia" },`, fmt.Sprintf(`{ name = "asia" }, { name = %q, labels = { ring = "region" } },`, name))
	}
	hasWorkload := func(s *guideRollout, name string) bool { return s.hasFolder(name + "/payments-live") }
	s := newGuideRollout(t)
	addHost(s, "africa")
	if plan := s.applyHourLater("1 1 1 1"); !hasWorkload(s, "africa") || prodAfter(plan)["rolled_out"] != true {
		t.Errorf("a joining host does not get released content at once: %s", s.planText)
	}
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	addHost(s, "oceania")
	if s.applyHourLater("2 1 1 1"); hasWorkload(s, "oceania") {
		t.Errorf("a host that joins during a rollout does not wait for its stage: %s", s.planText)
	}
	s.report("ready", "canary-1")
	for range 5 { // one for each batch
		s.clock.now = s.clock.now.Add(time.Hour)
		apply(t, s.w, s.configuration())
		s.report("ready", "america-1", "europe-1")
	}
	if !hasWorkload(s, "oceania") || s.versions() != "2 2 2 2" {
		t.Errorf("the joined host is not reached: %s", s.versions())
	}
}

func TestTheGuideOnStagedRolloutsLeavesOutAnEmptyListOfHosts(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t, "stages = [", `stages = [
      { name = "empty", hosts = [] },`)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.expectText(`Stage "empty" selects no host of the fleet, and is skipped`)
}

func TestTheGuideOnStagedRolloutsProvesRequiredWorkloadsFirst(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t)
	s.editHCL("workloads = [{", `workloads = [{
      name      = "base"
      workspace = "payments"
      deployment_targets = {
        live = { environment = "prod", manifests = { repo = "https://git.example.com/base", tag = "base1" } }
      }
    }, {
      requires  = ["base"]`)
	s.applyWithoutRollout()
	s.setVersion("2")
	s.editHCL("base1", "base2")
	s.applyHourLater("1 1 1 1")
	s.expectText("spec.ref.tag, on canary: base-live")
	s.expectText("waits for its requirements")
	s.report("ready", "canary-1")
	s.reports["canary-1 base"] = maps.Clone(s.reports["canary-1"])
	s.reports["canary-1 base"]["assignment"] = "canary/base-live"
	s.applyHourLater("2 1 1 1")
	for name, content := range s.files() {
		if strings.HasPrefix(name, "canary/base-live/") && strings.Contains(content, "base2") {
			return
		}
	}
	t.Error("base2 is not on canary")
}
