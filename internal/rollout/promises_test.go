package rollout_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// waits expects that the only change waits for a condition, with a detail. A test with a golden file has the words.
func waits(t *testing.T, out *rollout.Outcome, wait rollout.Wait, want rollout.Detail) {
	t.Helper()
	if len(out.Progress) != 1 || out.Progress[0].WaitsFor != wait || !reflect.DeepEqual(out.Progress[0].Detail, want) {
		t.Errorf("it waits for %+v, want %s with %+v", out.Progress, wait, want)
	}
}

// stands expects where the only change stands: its place, its hosts, and the condition and the time that it waits for.
func stands(t *testing.T, out *rollout.Outcome, at rollout.StagePlace, done, hosts int, wait rollout.Wait, notBefore time.Time) {
	t.Helper()
	if len(out.Progress) != 1 {
		t.Fatalf("under way are %+v", out.Progress)
	}
	if p := out.Progress[0]; p.Place() != at || p.HostsDone != done || p.Hosts != hosts || p.WaitsFor != wait || !p.NotBefore.Equal(notBefore) {
		t.Errorf("it is at %s, not before %s; want %+v, %d of %d, %s, %s", p.Text(), p.NotBefore, at, done, hosts, wait, notBefore)
	}
}

// notes expects the notes of a step.
func notes(t *testing.T, out *rollout.Outcome, want ...rollout.Note) {
	t.Helper()
	if !reflect.DeepEqual(out.Notes, want) {
		t.Errorf("the notes are %+v, want %+v", out.Notes, want)
	}
}

// passes expects the stages that pass without some of their clusters.
func passes(t *testing.T, out *rollout.Outcome, want rollout.PassedStage) {
	t.Helper()
	if len(out.PassedOver) == 1 {
		want.Approval = out.PassedOver[0].Approval
	}
	if !reflect.DeepEqual(out.PassedOver, []rollout.PassedStage{want}) {
		t.Errorf("passed over are %+v, want %+v", out.PassedOver, want)
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
	waits(t, out, rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Failed: 1}, FailedAt: rollout.StagePlace{Stage: 1, Stages: 3, Name: "canary"},
	})
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
		if d := out.Progress[0].Detail; d.Clusters.Failed != 1 || d.RollsBackAt.Truncate(time.Hour) != noon.Add(2*time.Hour) || d.NotRolledBack {
			t.Errorf("it waits for %+v", d)
		}
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
	waits(t, s.expect(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Stuck: 1}, NotRolledBack: true,
	})
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
	waits(t, out, rollout.WaitsForContent, rollout.Detail{Clusters: rollout.ClusterCounts{Total: 1, Stuck: 1}})
	if is := out.Progress[0]; !is.Stuck || is.Condition != rollout.Stuck {
		t.Errorf("it is %+v", is)
	}
	checkRoundTrip(t, out.Progress)
	s.Settings.RollBack = true
	out = s.expect(t, "1 1 1")
	if is := out.Progress[0]; !is.Stuck || is.Condition != rollout.RolledBack {
		t.Errorf("it is %+v", is)
	}
	checkRoundTrip(t, out.Progress)
}

func TestARolloutWhoseNumbersAllowItEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		canary  map[string]any
		further map[string]any
		become  func(s *site)
		passed  rollout.PassedStage
	}{
		"its only cluster has failed, and may": {
			map[string]any{"max_failed": number64("1")}, nil, func(s *site) { s.report("canary", verdict.Failed) },
			rollout.PassedStage{Failed: 1},
		},
		"its only cluster is dead": {
			nil, map[string]any{"unknown": "skip"}, func(s *site) { delete(s.reports, "canary") }, rollout.PassedStage{Unknown: 1},
		},
		"its only cluster is dead, with a deadline": {
			nil, map[string]any{"unknown": "skip", "progress_deadline": "30m"}, func(s *site) { delete(s.reports, "canary") },
			rollout.PassedStage{Unknown: 1},
		},
		"its only cluster is stuck, and may be": {
			map[string]any{"max_failed": number64("1")}, map[string]any{"progress_deadline": "30m"}, func(s *site) { s.report("canary", verdict.Progressing) },
			rollout.PassedStage{Stuck: 1},
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
					test.passed.Stage = rollout.StagePlace{Stage: 1, Stages: 3, Name: "canary"}
					passes(t, out, test.passed)
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
			passes(t, out, rollout.PassedStage{Stage: rollout.StagePlace{Stage: 1, Stages: 2, Name: "many"}, NotReady: 1})
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
	waits(t, out, rollout.WaitsForClusters, rollout.Detail{Clusters: rollout.ClusterCounts{Total: 2, Soaking: 1}})
	if at := noon.Add(151 * time.Minute); !out.Progress[0].NotBefore.Equal(at) {
		t.Errorf("it proceeds at %s, want %s", out.Progress[0].NotBefore, at)
	}
	out, _ = s.run(t)
	if is := out.Progress[0]; is.WaitsFor != rollout.WaitsForClusters || is.Detail.Clusters.Ready != 1 || s.Deployed["pair-1"]["app"] != "pair-1-v2-tree" ||
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
	notes(t, s.expect(t, "2 1 1"), rollout.Note{Kind: rollout.StageIsEmpty, Subject: "empty"})
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
	waits(t, out, rollout.WaitsForSoak, rollout.Detail{})
	notes(t, out, rollout.Note{Kind: rollout.TimeProves, Hosts: []string{"canary"}})
	out = s.expect(t, "2 1 1")
	if at := noon.Add(151 * time.Minute); out.Progress[0].WaitsFor != rollout.WaitsForSoak || !out.Progress[0].NotBefore.Equal(at) {
		t.Errorf("it waits for %+v, want %s", out.Progress[0], at)
	}
	s.expect(t, "2 2 1")
}

func TestAHeldHostSaysWhatHoldsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"canary"}, Reason: "the store is being moved", Until: noon.Add(30 * time.Hour)}}
	out := s.expect(t, "1 1 1")
	waits(t, out, rollout.WaitsForHold, rollout.Detail{
		Holds: []rollout.HoldDetail{{Reason: "the store is being moved", Until: noon.Add(30 * time.Hour)}},
	})
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
	out := s.expect(t, "2 2 2")
	notes(t, out, rollout.Note{Kind: rollout.ExpeditesLater, Subject: "app", Other: out.Progress[0].Approval()})
	for host := range s.Hosts {
		s.report(host, verdict.Ready)
	}
	s.expect(t, "2 2 2")
	notes(t, s.expect(t, "2 2 2"), rollout.Note{Kind: rollout.ExpeditesNext, Subject: "app"})
}

func TestAFailureOfTheRootHaltsAndRollsNothingBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Failed)
	report := s.reports["canary"]
	report.OfRoot = true
	s.reports["canary"] = report
	waits(t, s.expect(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Failed: 1}, NotRolledBack: true,
	})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
}
