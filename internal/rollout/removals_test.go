package rollout_test

import (
	"strings"
	"testing"

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
	s.expect(t, " 1 1")
	s.expect(t, " 1 1") // the cluster has it still
	s.reports["canary"] = rollout.Report{Known: true, Status: verdict.Status{Verdict: verdict.Ready}}
	s.expect(t, "  1")
}

// moving is a site on which app moves from region to canary and rest.
func moving(t *testing.T, settings map[string]any) *site {
	t.Helper()
	s := newSite(t, settings)
	for _, host := range []string{"canary", "rest"} {
		s.Deployed[host], s.Wanted[host] = map[string]string{}, map[string]string{"app": host + "-v1-tree"}
		delete(s.Records, key(host))
	}
	s.Wanted["region"], s.commits["first"] = map[string]string{}, s.Deployed.Clone()
	return s
}

func TestNothingIsRemovedBeforeWhatTakesItsPlaceIsProven(t *testing.T) {
	t.Parallel()
	s := moving(t, nil)
	s.expect(t, "1 1 ")
	s.report("canary", verdict.Ready)
	says(t, s.expect(t, "1 1 1"), "at stage 2 of 2, on 2 of 3 hosts: waits for clusters to be ready")
	s.expect(t, "1 1 1")
	s.report("rest", verdict.Ready)
	out := s.expect(t, "1  1")
	says(t, out, `at removal stage 1 of 1 "region", on 3 of 3 hosts: waits for clusters to be ready`)
	if said := out.RollingOut()["app"].Text; !strings.HasPrefix(said, `removal stage 1 of 1 "region", 3 of 3 hosts, since `) {
		t.Errorf("rolling_out says %s", said)
	}
	checkRoundTrip(t, out.Progress)
	s.reports["region"] = rollout.Report{Known: true, Status: verdict.Status{Verdict: verdict.Ready}}
	if out := s.expect(t, "1  1"); !out.RolledOut {
		t.Errorf("once the folder is gone from the cluster: %v", out.Lines())
	}
}

func TestAnAdditionThatFailsKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := moving(t, nil)
	s.expect(t, "1 1 ")
	s.report("canary", verdict.Ready)
	s.expect(t, "1 1 1")
	s.report("rest", verdict.Failed)
	says(t, s.expect(t, "1 1 1"), "waits for newer content, since this one failed: 1 cluster has failed")
	s.Settings.RollBack = true
	s.expect(t, " 1 ")

	s = moving(t, map[string]any{"on_failure": "roll_back"}) // also once removals are under way
	s.expect(t, "1 1 ")
	s.report("canary", verdict.Ready)
	s.expect(t, "1 1 1")
	s.report("rest", verdict.Ready)
	s.expect(t, "1  1")
	s.report("canary", verdict.Failed)
	says(t, s.expect(t, " 1 "), "at removal stage 1 of 1")
}

func TestRemovalsKeepToWhatAStageSays(t *testing.T) {
	t.Parallel()
	region := with(with(with(ringStage("region"), "max_concurrent", number64("1")), "soak", "150m"), "windows", []any{
		map[string]any{"kind": "deny", "schedule": "0 16 * * *", "duration": "2h"},
	})
	s := newSite(t, map[string]any{"stages": []any{ringStage("canary"), region}})
	s.Hosts["second"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "region"}}
	s.Hosts["region"].Clusters = nil
	s.Deployed["second"] = map[string]string{"app": "second-v1-tree"}
	s.Wanted["region"], s.Wanted["second"] = map[string]string{}, map[string]string{}
	s.Wanted["rest"] = map[string]string{"app": "rest-v1-tree"}
	left := func() int {
		return len(s.Deployed["region"]) + len(s.Deployed["second"])
	}
	s.run(t) // at 13:00
	s.report("canary", verdict.Ready)
	if s.run(t); left() != 1 {
		t.Errorf("at 14:00, %d folders are left", left())
	}
	out, _ := s.run(t)
	if says(t, out, "the soak time, since only time counts: not before 2026-01-01 18:00 UTC"); left() != 1 {
		t.Errorf("at 15:00, %d folders are left", left())
	}
	for range 2 {
		if out, _ := s.run(t); left() != 1 {
			t.Errorf("at %s, %d folders are left: %v", s.Now, left(), out.Lines())
		}
	}
	if s.run(t); left() != 0 {
		t.Errorf("at 18:00, %d folders are left", left())
	}
}

// What is held proves nothing, as everywhere: its stage waits where all of it is held, and goes without it where not.
func TestWhatIsHeldKeepsBackRemovalsOnlyWhereAllOfItsStageIs(t *testing.T) {
	t.Parallel()
	s := moving(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"rest"}, Reason: "audit"}}
	s.expect(t, "1 1 ")
	s.report("canary", verdict.Ready)
	says(t, s.expect(t, "1 1 "), "at stage 2 of 2, on 1 of 3 hosts: waits for a hold: audit")
	s.Hosts["other"], s.Wanted["other"] = &rollout.FleetHost{}, map[string]string{"app": "other-v1-tree"}
	s.expect(t, "1 1 ")
	s.run(t)
	if out, got := s.run(t); got != "1  " {
		t.Errorf("with another host in the stage, deployed %q: %v", got, out.Lines())
	}
}

func TestWhatGoesAtOnceRemovesAtOnce(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]any{
		"expedite": {"expedite": []any{"app"}}, "no stages": {"stages": []any{}},
	} {
		s := moving(t, settings)
		if out, got := s.run(t); got != "1  1" {
			t.Errorf("%s: deployed %q: %v", name, got, out.Lines())
		}
	}
	s := moving(t, nil)
	s.Settings = nil
	s.expect(t, "1  1")
	s = moving(t, nil)
	delete(s.Hosts, "region") // which has left the fleet
	delete(s.Wanted, "region")
	s.expect(t, "1  ")
}

func TestRemovalsWaitAfterALostState(t *testing.T) {
	t.Parallel()
	s := moving(t, nil)
	s.expect(t, "1 1 ")
	s.report("canary", verdict.Ready)
	s.expect(t, "1 1 1")
	s.State, s.Lost = nil, true
	s.expect(t, "1 1 1")
	s.Lost = false
	s.report("rest", verdict.Ready)
	s.expect(t, "1  1")
	s.State, s.Lost = nil, true
	if out := s.expect(t, "1  1"); !out.RolledOut {
		t.Errorf("where nothing is left to do: %v", out.Lines())
	}
}
