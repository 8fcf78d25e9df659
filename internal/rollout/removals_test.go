package rollout_test

import (
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestRemovalsGoThroughTheStages(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for host := range s.Wanted {
		s.Wanted[host] = map[string]string{}
	}
	s.reports["canary"] = rollout.Report{Known: true, Tree: "canary-v1-tree", Status: verdict.Status{Verdict: verdict.Ready}}
	s.expectVersions(t, " 1 1")
	s.expectVersions(t, " 1 1") // the cluster still has the folder
	s.reports["canary"] = rollout.Report{Known: true, Status: verdict.Status{Verdict: verdict.Ready}}
	s.expectVersions(t, "  1")
}

// newMovingSite returns a site whose deployment target moves from region to canary and rest.
func newMovingSite(t *testing.T, settings map[string]any) *site {
	t.Helper()
	s := newSite(t, settings)
	for _, host := range []string{"canary", "rest"} {
		s.Deployed[host], s.Wanted[host] = map[string]string{}, map[string]string{"app": host + "-v1-tree"}
		delete(s.Records, key(host))
	}
	s.Wanted["region"], s.commits["first"] = map[string]string{}, s.Deployed.Clone()
	return s
}

func TestNothingIsRemovedBeforeItsReplacementIsProven(t *testing.T) {
	t.Parallel()
	s := newMovingSite(t, nil)
	s.expectVersions(t, "1 1 ")
	s.setReport("canary", verdict.Ready)
	expectPlace(t, s.expectVersions(t, "1 1 1"), rollout.StagePlace{Stage: 2, Stages: 2}, 2, 3, rollout.WaitsForClusters, time.Time{})
	s.expectVersions(t, "1 1 1")
	s.setReport("rest", verdict.Ready)
	out := s.expectVersions(t, "1  1")
	removal := rollout.StagePlace{Stage: 1, Stages: 1, Name: "region", Removes: true}
	expectPlace(t, out, removal, 3, 3, rollout.WaitsForClusters, time.Time{})
	checkRoundTrip(t, out.Progress)
	s.reports["region"] = rollout.Report{Known: true, Status: verdict.Status{Verdict: verdict.Ready}}
	if out := s.expectVersions(t, "1  1"); !out.RolledOut {
		t.Errorf("after the cluster removed the folder: %v", out.Lines())
	}
}

func TestAFailedAdditionPreventsRemovals(t *testing.T) {
	t.Parallel()
	s := newMovingSite(t, nil)
	s.expectVersions(t, "1 1 ")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "1 1 1")
	s.setReport("rest", verdict.Failed)
	expectWait(t, s.expectVersions(t, "1 1 1"), rollout.WaitsForContent, rollout.Detail{Clusters: rollout.ClusterCounts{Total: 1, Failed: 1}})
	s.Settings.RollBack = true
	s.expectVersions(t, " 1 ")

	s = newMovingSite(t, map[string]any{"on_failure": "roll_back"}) // after removals began
	s.expectVersions(t, "1 1 ")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "1 1 1")
	s.setReport("rest", verdict.Ready)
	s.expectVersions(t, "1  1")
	s.setReport("canary", verdict.Failed)
	if at := s.expectVersions(t, " 1 ").Progress[0].Place(); !at.Removes || at.Stage != 1 || at.Stages != 1 {
		t.Errorf("got place %+v", at)
	}
}

func TestRemovalsObeyTheSettingsOfTheirStage(t *testing.T) {
	t.Parallel()
	region := withAttribute(withAttribute(withAttribute(ringStage("region"), "max_concurrent", jsonNumber("1")), "soak", "150m"), "windows", []any{
		map[string]any{"kind": "deny", "schedule": "0 16 * * *", "duration": "2h"},
	})
	s := newSite(t, map[string]any{"stages": []any{ringStage("canary"), region}})
	s.Hosts["second"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "region"}}
	s.Hosts["region"].Clusters = nil
	s.Deployed["second"] = map[string]string{"app": "second-v1-tree"}
	s.Wanted["region"], s.Wanted["second"] = map[string]string{}, map[string]string{}
	s.Wanted["rest"] = map[string]string{"app": "rest-v1-tree"}
	countFolders := func() int {
		return len(s.Deployed["region"]) + len(s.Deployed["second"])
	}
	s.run(t) // at 13:00
	s.setReport("canary", verdict.Ready)
	if s.run(t); countFolders() != 1 {
		t.Errorf("at 14:00, %d folders are left", countFolders())
	}
	out, _ := s.run(t)
	if p := out.Progress[0]; p.WaitsFor != rollout.WaitsForSoak || !p.NotBefore.Equal(noon.Add(6*time.Hour)) || countFolders() != 1 {
		t.Errorf("at 15:00, %d folders are left", countFolders())
	}
	for range 2 {
		if out, _ := s.run(t); countFolders() != 1 {
			t.Errorf("at %s, %d folders are left: %v", s.Now, countFolders(), out.Lines())
		}
	}
	if s.run(t); countFolders() != 0 {
		t.Errorf("at 18:00, %d folders are left", countFolders())
	}
}

// A held host proves nothing: its stage waits if all of its hosts are held, and otherwise continues without it.
func TestHoldsDelayRemovalsOnlyIfTheyCoverAStage(t *testing.T) {
	t.Parallel()
	s := newMovingSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"rest"}, Reason: "audit"}}
	s.expectVersions(t, "1 1 ")
	s.setReport("canary", verdict.Ready)
	out := s.expectVersions(t, "1 1 ")
	expectPlace(t, out, rollout.StagePlace{Stage: 2, Stages: 2}, 1, 3, rollout.WaitsForHold, time.Time{})
	expectWait(t, out, rollout.WaitsForHold, rollout.Detail{Holds: []rollout.HoldDetail{{Reason: "audit"}}})
	s.Hosts["other"], s.Wanted["other"] = &rollout.FleetHost{}, map[string]string{"app": "other-v1-tree"}
	s.expectVersions(t, "1 1 ")
	s.run(t)
	if out, got := s.run(t); got != "1  " {
		t.Errorf("with another host in the stage, deployed %q: %v", got, out.Lines())
	}
}

func TestChangesWithoutStagesRemoveAtOnce(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]any{
		"expedite": {"expedite": []any{"app"}}, "no stages": {"stages": []any{}},
	} {
		s := newMovingSite(t, settings)
		if out, got := s.run(t); got != "1  1" {
			t.Errorf("%s: deployed %q: %v", name, got, out.Lines())
		}
	}
	s := newMovingSite(t, nil)
	s.Settings = nil
	s.expectVersions(t, "1  1")
	s = newMovingSite(t, nil)
	delete(s.Hosts, "region") // region left the fleet
	delete(s.Wanted, "region")
	s.expectVersions(t, "1  ")
}

func TestRemovalsWaitAfterALostState(t *testing.T) {
	t.Parallel()
	s := newMovingSite(t, nil)
	s.expectVersions(t, "1 1 ")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "1 1 1")
	s.State, s.Lost = nil, true
	s.expectVersions(t, "1 1 1")
	s.Lost = false
	s.setReport("rest", verdict.Ready)
	s.expectVersions(t, "1  1")
	s.State, s.Lost = nil, true
	if out := s.expectVersions(t, "1  1"); !out.RolledOut {
		t.Errorf("with nothing left to do: %v", out.Lines())
	}
}
