package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// says expects a text among the lines and notes of a step.
func says(t *testing.T, out *rollout.Outcome, want string) {
	t.Helper()
	if said := strings.Join(append(out.Lines(), out.Notes...), "\n"); !strings.Contains(said, want) {
		t.Errorf("it does not say %q:\n%s", want, said)
	}
}

func TestACanaryThatFailsAfterItsStagePassedHalts(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	s.report("canary", verdict.Failed)
	s.report("region", verdict.Ready)
	out := s.expect(t, "2 2 1")
	says(t, out, `waits for newer content, since this one failed: 1 cluster has failed at stage 1 of 3 "canary"`)
	s.report("canary", verdict.Progressing) // revokes nothing
	s.expect(t, "2 2 2")
	s.report("rest", verdict.Ready)
	s.report("canary", verdict.Failed)
	if out := s.expect(t, "2 2 2"); out.RolledOut || !out.Progress[0].IsHalted() {
		t.Errorf("with a failed canary it ends: %v", out.Lines())
	}
	s.report("canary", verdict.Ready)
	if out := s.expect(t, "2 2 2"); !out.RolledOut {
		t.Errorf("once it is ready again: %v", out.Lines())
	}
}

func TestACanaryThatFailsAfterItsStagePassedIsRolledBackWithAll(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	s.report("canary", verdict.Failed)
	s.report("region", verdict.Ready)
	s.expect(t, "1 1 1")
}

func TestOnlyAFailureThatLastsIsRolledBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		failedFor string
		lasted    time.Duration
		back      bool
	}{
		{"", 4 * time.Minute, false}, {"", 5 * time.Minute, true}, {"0s", 0, true}, {"30m", 29 * time.Minute, false}, {"30m", 30 * time.Minute, true},
	} {
		settings := map[string]any{"on_failure": "roll_back"}
		if test.failedFor != "" {
			settings["failed_for"] = test.failedFor
		}
		s := newSite(t, settings)
		s.expect(t, "2 1 1")
		s.report("canary", verdict.Failed)
		report := s.reports["canary"]
		report.Since = s.Now.Add(time.Hour - test.lasted) // of the next run
		s.reports["canary"] = report
		if test.back {
			s.expect(t, "1 1 1")
			continue
		}
		out := s.expect(t, "2 1 1")
		says(t, out, "1 cluster has failed, and it is rolled back if that lasts until 2026-01-01T14:")
		s.report("canary", verdict.Ready)
		s.expect(t, "2 2 1")
	}
}

func TestAFailureHaltsAtOnceUnlessItMayPass(t *testing.T) {
	t.Parallel()
	for failedFor, halts := range map[string]bool{"0s": true, "30m": false} {
		s := newSite(t, map[string]any{"failed_for": failedFor})
		s.expect(t, "2 1 1")
		s.report("canary", verdict.Failed)
		report := s.reports["canary"]
		report.Since = s.Now.Add(time.Hour)
		s.reports["canary"] = report
		if out := s.expect(t, "2 1 1"); out.Progress[0].IsHalted() != halts {
			t.Errorf("failed_for = %s: %v", failedFor, out.Lines())
		}
		if out := s.expect(t, "2 1 1"); !out.Progress[0].IsHalted() {
			t.Errorf("failed_for = %s, an hour later: %v", failedFor, out.Lines())
		}
	}
}

// Whose workload keeps a host from getting ready is not known either.
func TestWhatOnlyTheRootSaysIsStuckHaltsAndRollsNothingBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back", "progress_deadline": "30m"})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Progressing)
	report := s.reports["canary"]
	report.OfRoot = true
	s.reports["canary"] = report
	says(t, s.expect(t, "2 1 1"), "1 cluster is not ready in time; that is said of no assignment in particular, so it is not rolled back")
	report.OfRoot = false
	s.reports["canary"] = report
	s.expect(t, "1 1 1")
}

func TestStuckAndFailedAreTwoWords(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"progress_deadline": "30m"})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Progressing)
	out := s.expect(t, "2 1 1")
	says(t, out, "waits for newer content, since this one is stuck: 1 cluster is not ready in time")
	if said := out.RollingOut()["app"].Text; !strings.Contains(said, ", stuck") || strings.Contains(said, "failed") {
		t.Errorf("rolling_out says %s", said)
	}
	checkRoundTrip(t, out.Progress)
	s.Settings.RollBack = true
	out = s.expect(t, "1 1 1")
	if said := out.RollingOut()["app"].Text; !strings.Contains(said, ", was stuck and was rolled back") {
		t.Errorf("rolling_out says %s", said)
	}
	checkRoundTrip(t, out.Progress)
}

func TestARolloutWhoseNumbersAllowItEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		canary  map[string]any
		further map[string]any
		become  func(s *site)
		says    string
	}{
		"its only cluster has failed, and may": {
			map[string]any{"max_failed": number64("1")}, nil, func(s *site) { s.report("canary", verdict.Failed) },
			`passes stage 1 of 3 "canary" without 1 cluster: 1 failed`,
		},
		"its only cluster is dead": {
			nil, map[string]any{"unknown": "skip"}, func(s *site) { delete(s.reports, "canary") }, `passes stage 1 of 3 "canary" without 1 cluster: 1 unknown`,
		},
		"its only cluster is dead, with a deadline": {
			nil, map[string]any{"unknown": "skip", "progress_deadline": "30m"}, func(s *site) { delete(s.reports, "canary") },
			`passes stage 1 of 3 "canary" without 1 cluster: 1 unknown`,
		},
		"its only cluster is stuck, and may be": {
			map[string]any{"max_failed": number64("1")}, map[string]any{"progress_deadline": "30m"}, func(s *site) { s.report("canary", verdict.Progressing) },
			`passes stage 1 of 3 "canary" without 1 cluster: 1 stuck`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			canary := ringStage("canary")
			for name, value := range test.canary {
				canary[name] = value
			}
			settings := map[string]any{"stages": []any{canary, ringStage("region")}}
			for name, value := range test.further {
				settings[name] = value
			}
			s := newSite(t, settings)
			s.expect(t, "2 1 1")
			for range 3 {
				test.become(s)
				out, versions := s.run(t)
				if versions == "2 2 1" {
					says(t, out, test.says)
					return
				}
			}
			t.Error("it waits for ever")
		})
	}
}

// One of four hosts never becomes ready, and half of them are enough.
func TestAHostThatProgressesForEverHoldsNoBatch(t *testing.T) {
	t.Parallel()
	stage := with(with(ringStage("many"), "max_concurrent", number64("1")), "ready_percent", number64("50"))
	s := newSite(t, map[string]any{"stages": []any{stage}})
	for i := range 4 {
		host := fmt.Sprintf("many-%d", i)
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "many"}, Clusters: []string{host}}
		s.Deployed[host] = map[string]string{"app": host + "-v1-tree"}
		s.Records[key(host)] = rollout.Record{Tree: host + "-v1-tree", Changed: noon.Add(-48 * time.Hour)}
	}
	s.want("2")
	stuck := ""
	for run := range 12 {
		under := 0
		for i := range 4 {
			host := fmt.Sprintf("many-%d", i)
			if s.Deployed[host]["app"] != host+"-v2-tree" {
				continue
			}
			if stuck == "" {
				stuck = host // the first that is written
			}
			is := verdict.Ready
			if host == stuck {
				is = verdict.Progressing
			} else if s.reports[host].Verdict != verdict.Ready {
				under++
			}
			s.report(host, is)
		}
		if under > 1 {
			t.Errorf("run %d: %d hosts are under way besides the one that is slow", run, under)
		}
		out, _ := s.run(t)
		if s.Deployed["rest"]["app"] == "rest-v2-tree" {
			says(t, out, `passes stage 1 of 2 "many" without 1 cluster: 1 not ready yet`)
			return
		}
	}
	t.Errorf("it waits for ever: %v", s.Deployed)
}

// Also those that a later batch writes.
func TestAllClustersOfAStageAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{with(with(ringStage("pair"), "max_concurrent", number64("1")), "soak", "90m")}})
	for _, host := range []string{"pair-1", "pair-2"} {
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "pair"}, Clusters: []string{host}}
		s.Deployed[host] = map[string]string{"app": host + "-v1-tree"}
		s.Records[key(host)] = rollout.Record{Tree: host + "-v1-tree", Changed: noon.Add(-48 * time.Hour)}
	}
	s.want("2")
	s.run(t)
	first := "pair-1"
	if s.Deployed[first]["app"] == first+"-v1-tree" {
		first = "pair-2"
	}
	s.report(first, verdict.Ready)
	out, _ := s.run(t)
	// Then there is room for the other one.
	says(t, out, "waits for clusters to be ready: 0 of 2 clusters are ready, 1 soaking, not before 2026-01-01 14:31 UTC")
	out, _ = s.run(t)
	if says(t, out, "waits for clusters to be ready: 1 of 2 clusters are ready"); s.Deployed["pair-1"]["app"] != "pair-1-v2-tree" ||
		s.Deployed["pair-2"]["app"] != "pair-2-v2-tree" {
		t.Errorf("deployed is %v", s.Deployed)
	}
}

func TestAStageWithAnEmptyListOfHostsSelectsNone(t *testing.T) {
	t.Parallel()
	s := newSite(
		t,
		map[string]any{"stages": []any{map[string]any{"name": "empty", "hosts": []any{}}, ringStage("canary"), ringStage("region")}},
	)
	says(t, s.expect(t, "2 1 1"), `stage "empty" selects no host of the fleet, and is skipped`)
	s = newSite(t, nil)
	holds, _, findings := rollout.DecodeHolds([]any{map[string]any{"hosts": []any{}}})
	if s.Holds = holds; len(findings) > 0 {
		t.Fatal(findings)
	}
	s.expect(t, "2 1 1")
}

func TestAStageWithoutClustersSaysThatOnlyTimeCounts(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{with(ringStage("canary"), "soak", "90m"), ringStage("region")}})
	s.Hosts["canary"].Clusters = nil
	out := s.expect(t, "2 1 1")
	says(t, out, `waits for the soak time, since only time counts`)
	says(t, out, `only time proves a change on canary, of which the fleet has no clusters`)
	says(t, s.expect(t, "2 1 1"), `waits for the soak time, since only time counts: not before 2026-01-01 14:31 UTC`)
	s.expect(t, "2 2 1")
}

func TestAHeldHostSaysWhatHoldsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"canary"}, Reason: "the store is being moved", Until: noon.Add(30 * time.Hour)}}
	out := s.expect(t, "1 1 1")
	says(t, out, `waits for a hold: the store is being moved, until 2026-01-02T18:00:00Z`)
	if said := out.RollingOut()["app"].Text; !strings.Contains(said, "waits for a hold") {
		t.Errorf("rolling_out says %s", said)
	}
}

func TestAHostThatJoinsInTheMiddleWaitsForItsStage(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	for host, ring := range map[string]string{"new-canary": "canary", "new-region": "region"} {
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": ring}}
		s.Wanted[host] = map[string]string{"app": host + "-v2-tree"}
	}
	s.expect(t, "2 1 1")
	if s.Deployed["new-region"]["app"] != "" || s.Deployed["new-canary"]["app"] == "" {
		t.Errorf("in the middle, hosts that join get %v", s.Deployed)
	}
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	if s.Deployed["new-region"]["app"] == "" {
		t.Error("its stage has come")
	}
}

func TestExpediteByABareNameIsNoted(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"expedite": []any{"app"}})
	says(t, s.expect(t, "2 2 2"), `expedite "app" is for whatever that gets later, too; write "app@`)
	for host := range s.Hosts {
		s.report(host, verdict.Ready)
	}
	s.expect(t, "2 2 2")
	says(t, s.expect(t, "2 2 2"), `expedite "app" is for whatever that gets next, too`)
}

func TestAFailureOfTheRootHaltsAndRollsNothingBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Failed)
	report := s.reports["canary"]
	report.OfRoot = true
	s.reports["canary"] = report
	says(t, s.expect(t, "2 1 1"), "1 cluster has failed; that is said of no assignment in particular, so it is not rolled back")
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
}
