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

// expectWait expects the condition and the detail that the only change waits for. TestTextsOfRollouts checks the texts.
func expectWait(t *testing.T, out *rollout.Outcome, wait rollout.Wait, want rollout.Detail) {
	t.Helper()
	if len(out.Progress) != 1 || out.Progress[0].WaitsFor != wait || !reflect.DeepEqual(out.Progress[0].Detail, want) {
		t.Errorf("got %+v, want %s with %+v", out.Progress, wait, want)
	}
}

// expectPlace expects the stage, the hosts, the condition and the time of the only change.
func expectPlace(t *testing.T, out *rollout.Outcome, at rollout.StagePlace, done, hosts int, wait rollout.Wait, notBefore time.Time) {
	t.Helper()
	if len(out.Progress) != 1 {
		t.Fatalf("got %+v, want one change", out.Progress)
	}
	if p := out.Progress[0]; p.Place() != at || p.HostsDone != done || p.Hosts != hosts || p.WaitsFor != wait || !p.NotBefore.Equal(notBefore) {
		t.Errorf("got %s, not before %s; want %+v, %d of %d, %s, %s", p.Text(), p.NotBefore, at, done, hosts, wait, notBefore)
	}
}

func expectNotes(t *testing.T, out *rollout.Outcome, want ...rollout.Note) {
	t.Helper()
	if !reflect.DeepEqual(out.Notes, want) {
		t.Errorf("got notes %+v, want %+v", out.Notes, want)
	}
}

// expectPassedStage expects the only stage that passes without some of its clusters.
func expectPassedStage(t *testing.T, out *rollout.Outcome, want rollout.PassedStage) {
	t.Helper()
	if len(out.PassedOver) == 1 {
		want.Approval = out.PassedOver[0].Approval
	}
	if !reflect.DeepEqual(out.PassedOver, []rollout.PassedStage{want}) {
		t.Errorf("got %+v, want %+v", out.PassedOver, want)
	}
}

func TestACanaryFailingAfterItsStageHaltsTheRollout(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	s.setReport("canary", verdict.Failed)
	s.setReport("region", verdict.Ready)
	out := s.expectVersions(t, "2 2 1")
	expectWait(t, out, rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Failed: 1}, FailedAt: rollout.StagePlace{Stage: 1, Stages: 3, Name: "canary"},
	})
	s.setReport("canary", verdict.Progressing) // revokes nothing
	s.expectVersions(t, "2 2 2")
	s.setReport("rest", verdict.Ready)
	s.setReport("canary", verdict.Failed)
	if out := s.expectVersions(t, "2 2 2"); out.RolledOut || !out.Progress[0].IsHalted() {
		t.Errorf("with a failed canary: %v", out.Lines())
	}
	s.setReport("canary", verdict.Ready)
	if out := s.expectVersions(t, "2 2 2"); !out.RolledOut {
		t.Errorf("with the canary ready again: %v", out.Lines())
	}
}

func TestACanaryFailingAfterItsStageRollsBackAllHosts(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	s.setReport("canary", verdict.Failed)
	s.setReport("region", verdict.Ready)
	s.expectVersions(t, "1 1 1")
}

func TestOnlyALastingFailureIsRolledBack(t *testing.T) {
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
		s.expectVersions(t, "2 1 1")
		s.setReport("canary", verdict.Failed)
		report := s.reports["canary"]
		report.Since = s.Now.Add(time.Hour - test.lasted) // of the next run
		s.reports["canary"] = report
		if test.back {
			s.expectVersions(t, "1 1 1")
			continue
		}
		out := s.expectVersions(t, "2 1 1")
		if d := out.Progress[0].Detail; d.Clusters.Failed != 1 || d.RollsBackAt.Truncate(time.Hour) != noon.Add(2*time.Hour) || d.NotRolledBack {
			t.Errorf("got %+v", d)
		}
		s.setReport("canary", verdict.Ready)
		s.expectVersions(t, "2 2 1")
	}
}

func TestAFailureHaltsAtOnceWithoutFailedFor(t *testing.T) {
	t.Parallel()
	for failedFor, halts := range map[string]bool{"0s": true, "30m": false} {
		s := newSite(t, map[string]any{"failed_for": failedFor})
		s.expectVersions(t, "2 1 1")
		s.setReport("canary", verdict.Failed)
		report := s.reports["canary"]
		report.Since = s.Now.Add(time.Hour)
		s.reports["canary"] = report
		if out := s.expectVersions(t, "2 1 1"); out.Progress[0].IsHalted() != halts {
			t.Errorf("failed_for = %s: %v", failedFor, out.Lines())
		}
		if out := s.expectVersions(t, "2 1 1"); !out.Progress[0].IsHalted() {
			t.Errorf("failed_for = %s, an hour later: %v", failedFor, out.Lines())
		}
	}
}

// A report of the root does not tell which workload is stuck.
func TestAStuckRootHaltsAndRollsNothingBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back", "progress_deadline": "30m"})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Progressing)
	report := s.reports["canary"]
	report.OfRoot = true
	s.reports["canary"] = report
	expectWait(t, s.expectVersions(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Stuck: 1}, NotRolledBack: true,
	})
	report.OfRoot = false
	s.reports["canary"] = report
	s.expectVersions(t, "1 1 1")
}

func TestStuckAndFailedAreDifferentConditions(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"progress_deadline": "30m"})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Progressing)
	out := s.expectVersions(t, "2 1 1")
	expectWait(t, out, rollout.WaitsForContent, rollout.Detail{Clusters: rollout.ClusterCounts{Total: 1, Stuck: 1}})
	if p := out.Progress[0]; !p.Stuck || p.Condition != rollout.Stuck {
		t.Errorf("got %+v", p)
	}
	checkRoundTrip(t, out.Progress)
	s.Settings.RollBack = true
	out = s.expectVersions(t, "1 1 1")
	if p := out.Progress[0]; !p.Stuck || p.Condition != rollout.RolledBack {
		t.Errorf("got %+v", p)
	}
	checkRoundTrip(t, out.Progress)
}

func TestARolloutEndsWithinItsTolerances(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		canary  map[string]any
		rollout map[string]any
		happen  func(s *site)
		passed  rollout.PassedStage
	}{
		"a failed cluster within max_failed": {
			map[string]any{"max_failed": jsonNumber("1")}, nil, func(s *site) { s.setReport("canary", verdict.Failed) },
			rollout.PassedStage{Failed: 1},
		},
		"a silent cluster": {
			nil, map[string]any{"unknown": "skip"}, func(s *site) { delete(s.reports, "canary") }, rollout.PassedStage{Unknown: 1},
		},
		"a silent cluster with a deadline": {
			nil, map[string]any{"unknown": "skip", "progress_deadline": "30m"}, func(s *site) { delete(s.reports, "canary") },
			rollout.PassedStage{Unknown: 1},
		},
		"a stuck cluster within max_failed": {
			map[string]any{"max_failed": jsonNumber("1")}, map[string]any{"progress_deadline": "30m"}, func(s *site) { s.setReport("canary", verdict.Progressing) },
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
			for name, value := range test.rollout {
				settings[name] = value
			}
			s := newSite(t, settings)
			s.expectVersions(t, "2 1 1")
			for range 3 {
				test.happen(s)
				out, versions := s.run(t)
				if versions == "2 2 1" {
					test.passed.Stage = rollout.StagePlace{Stage: 1, Stages: 3, Name: "canary"}
					expectPassedStage(t, out, test.passed)
					return
				}
			}
			t.Error("the rollout never ends")
		})
	}
}

// ready_percent is 50, and one of four hosts is never ready.
func TestASlowHostBlocksNoBatch(t *testing.T) {
	t.Parallel()
	stage := withAttribute(withAttribute(ringStage("many"), "max_concurrent", jsonNumber("1")), "ready_percent", jsonNumber("50"))
	s := newSite(t, map[string]any{"stages": []any{stage}})
	for i := range 4 {
		host := fmt.Sprintf("many-%d", i)
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "many"}, Clusters: []string{host}}
		s.Deployed[host] = map[string]string{"app": host + "-v1-tree"}
		s.Records[key(host)] = rollout.Record{Tree: host + "-v1-tree", Changed: noon.Add(-48 * time.Hour)}
	}
	s.wantVersion("2")
	stuck := ""
	for run := range 12 {
		current := 0
		for i := range 4 {
			host := fmt.Sprintf("many-%d", i)
			if s.Deployed[host]["app"] != host+"-v2-tree" {
				continue
			}
			if stuck == "" {
				stuck = host // the first written host
			}
			status := verdict.Ready
			if host == stuck {
				status = verdict.Progressing
			} else if s.reports[host].Verdict != verdict.Ready {
				current++
			}
			s.setReport(host, status)
		}
		if current > 1 {
			t.Errorf("run %d: %d hosts are under way in addition to the slow one", run, current)
		}
		out, _ := s.run(t)
		if s.Deployed["rest"]["app"] == "rest-v2-tree" {
			expectPassedStage(t, out, rollout.PassedStage{Stage: rollout.StagePlace{Stage: 1, Stages: 2, Name: "many"}, NotReady: 1})
			return
		}
	}
	t.Errorf("the rollout never ends: %v", s.Deployed)
}

// Clusters of later batches count, too.
func TestAllClustersOfAStageAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{withAttribute(withAttribute(ringStage("pair"), "max_concurrent", jsonNumber("1")), "soak", "90m")}})
	for _, host := range []string{"pair-1", "pair-2"} {
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "pair"}, Clusters: []string{host}}
		s.Deployed[host] = map[string]string{"app": host + "-v1-tree"}
		s.Records[key(host)] = rollout.Record{Tree: host + "-v1-tree", Changed: noon.Add(-48 * time.Hour)}
	}
	s.wantVersion("2")
	s.run(t)
	first := "pair-1"
	if s.Deployed[first]["app"] == first+"-v1-tree" {
		first = "pair-2"
	}
	s.setReport(first, verdict.Ready)
	out, _ := s.run(t)
	// The next run writes the other host.
	expectWait(t, out, rollout.WaitsForClusters, rollout.Detail{Clusters: rollout.ClusterCounts{Total: 2, Soaking: 1}})
	if at := noon.Add(151 * time.Minute); !out.Progress[0].NotBefore.Equal(at) {
		t.Errorf("got %s, want %s", out.Progress[0].NotBefore, at)
	}
	out, _ = s.run(t)
	if p := out.Progress[0]; p.WaitsFor != rollout.WaitsForClusters || p.Detail.Clusters.Ready != 1 || s.Deployed["pair-1"]["app"] != "pair-1-v2-tree" ||
		s.Deployed["pair-2"]["app"] != "pair-2-v2-tree" {
		t.Errorf("got %v deployed", s.Deployed)
	}
}

func TestAStageWithAnEmptyListOfHostsSelectsNone(t *testing.T) {
	t.Parallel()
	s := newSite(
		t,
		map[string]any{"stages": []any{map[string]any{"name": "empty", "hosts": []any{}}, ringStage("canary"), ringStage("region")}},
	)
	expectNotes(t, s.expectVersions(t, "2 1 1"), rollout.Note{Kind: rollout.StageIsEmpty, Subject: "empty"})
	s = newSite(t, nil)
	holds, _, findings := rollout.DecodeHolds([]any{map[string]any{"hosts": []any{}}})
	if s.Holds = holds; len(findings) > 0 {
		t.Fatal(findings)
	}
	s.expectVersions(t, "2 1 1")
}

func TestTimeProvesAStageWithoutClusters(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{withAttribute(ringStage("canary"), "soak", "90m"), ringStage("region")}})
	s.Hosts["canary"].Clusters = nil
	out := s.expectVersions(t, "2 1 1")
	expectWait(t, out, rollout.WaitsForSoak, rollout.Detail{})
	expectNotes(t, out, rollout.Note{Kind: rollout.TimeProves, Hosts: []string{"canary"}})
	out = s.expectVersions(t, "2 1 1")
	if at := noon.Add(151 * time.Minute); out.Progress[0].WaitsFor != rollout.WaitsForSoak || !out.Progress[0].NotBefore.Equal(at) {
		t.Errorf("got %+v, want %s", out.Progress[0], at)
	}
	s.expectVersions(t, "2 2 1")
}

func TestAHeldHostNamesItsHold(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"canary"}, Reason: "the store is being moved", Until: noon.Add(30 * time.Hour)}}
	out := s.expectVersions(t, "1 1 1")
	expectWait(t, out, rollout.WaitsForHold, rollout.Detail{
		Holds: []rollout.HoldDetail{{Reason: "the store is being moved", Until: noon.Add(30 * time.Hour)}},
	})
}

func TestAHostJoiningDuringARolloutWaitsForItsStage(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	for host, ring := range map[string]string{"new-canary": "canary", "new-region": "region"} {
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": ring}}
		s.Wanted[host] = map[string]string{"app": host + "-v2-tree"}
	}
	s.expectVersions(t, "2 1 1")
	if s.Deployed["new-region"]["app"] != "" || s.Deployed["new-canary"]["app"] == "" {
		t.Errorf("got %v deployed, want new-canary and not new-region", s.Deployed)
	}
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	if s.Deployed["new-region"]["app"] == "" {
		t.Error("new-region has nothing, though its stage has begun")
	}
}

func TestExpediteByABareNameIsNoted(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"expedite": []any{"app"}})
	out := s.expectVersions(t, "2 2 2")
	expectNotes(t, out, rollout.Note{Kind: rollout.ExpeditesLater, Subject: "app", Other: out.Progress[0].Approval()})
	for host := range s.Hosts {
		s.setReport(host, verdict.Ready)
	}
	s.expectVersions(t, "2 2 2")
	expectNotes(t, s.expectVersions(t, "2 2 2"), rollout.Note{Kind: rollout.ExpeditesNext, Subject: "app"})
}

func TestAFailureOfTheRootHaltsAndRollsNothingBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Failed)
	report := s.reports["canary"]
	report.OfRoot = true
	s.reports["canary"] = report
	expectWait(t, s.expectVersions(t, "2 1 1"), rollout.WaitsForContent, rollout.Detail{
		Clusters: rollout.ClusterCounts{Total: 1, Failed: 1}, NotRolledBack: true,
	})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
}
