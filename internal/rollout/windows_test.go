package rollout_test

import (
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestWindowsHoldAllThatIsWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"windows": []any{map[string]any{"kind": "allow", "schedule": "0 15 * * *", "duration": "1h"}}})
	out := s.expect(t, "1 1 1")
	if !out.Closed || len(out.Windowed) > 0 || out.RolledOut {
		t.Errorf("13:00 is closed: %+v", out)
	}
	s.Hosts["new"], s.Wanted["new"] = &rollout.FleetHost{}, map[string]string{}
	if out := s.expect(t, "1 1 1"); out.Decisions["new"] != nil {
		t.Error("a new host is written while windows are closed")
	}
	if out := s.expect(t, "2 1 1"); out.Closed || len(out.Windowed) != 1 {
		t.Errorf("15:00 is open: %+v", out)
	}
	s.report("canary", verdict.Ready)
	s.expect(t, "2 1 1")
	s.Settings.Expedite = []string{"app"}
	if out := s.expect(t, "2 2 2"); len(out.Windowed) > 0 || out.RolledOut {
		t.Errorf("what is expedited waits for no window, and is proven no sooner: %+v", out)
	}
}

// allow is a window that opens each day at an hour, for an hour.
func allow(hour string) []any {
	return []any{map[string]any{"kind": "allow", "schedule": "0 " + hour + " * * *", "duration": "1h"}}
}

func TestAStageHasWindowsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{
		"stages":  []any{ringStage("canary"), with(ringStage("region"), "windows", allow("16"))},
		"windows": []any{map[string]any{"kind": "deny", "schedule": "0 18 * * *", "duration": "1h"}},
	})
	out := s.expect(t, "2 1 1") // at 13:00
	if len(out.Windowed) != 1 {
		t.Errorf("the canary is written within %d kinds of windows", len(out.Windowed))
	}
	s.report("canary", verdict.Ready)
	out = s.expect(t, "2 1 1")
	stands(t, out, rollout.StagePlace{Stage: 2, Stages: 3, Name: "region"}, 1, 3, rollout.WaitsForWindow, noon.Add(4*time.Hour))
	if out.Closed || len(out.Windowed) > 0 {
		t.Errorf("where one stage waits: %+v", out)
	}
	if said := s.expect(t, "2 1 1").RollingOut(); said["app"] != out.RollingOut()["app"] {
		t.Errorf("an hour later it says %v", said)
	}
	if out := s.expect(t, "2 2 1"); len(out.Windowed) != 2 {
		t.Errorf("region is written within %d kinds of windows", len(out.Windowed))
	}
	s.report("region", verdict.Ready)
	if out := s.expect(t, "2 2 2"); len(out.Windowed) != 1 { // the last one has no windows
		t.Errorf("the last one is written within %d kinds of windows", len(out.Windowed))
	}
}

func TestWindowsOfAStageHoldNothingThatWaitsForNone(t *testing.T) {
	t.Parallel()
	never := []any{map[string]any{"kind": "allow", "schedule": "0 0 29 2 *", "duration": "1h"}}
	closed := func() map[string]any {
		return map[string]any{"stages": []any{with(ringStage("canary"), "windows", never), ringStage("region")}}
	}
	s := newSite(t, with(closed(), "expedite", []any{"app"}))
	if out := s.expect(t, "2 2 2"); len(out.Windowed) > 0 {
		t.Error("what is expedited has to be written within windows")
	}
	s = newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Failed)
	s.Settings.Stages[0].Windows = newSite(t, closed()).Settings.Stages[0].Windows
	if out := s.expect(t, "1 1 1"); len(out.Windowed) > 0 {
		t.Error("what goes back by itself has to be written within windows")
	}
	s = newSite(t, closed())
	delete(s.Hosts, "canary") // which has left the fleet
	delete(s.Wanted, "canary")
	s.expect(t, " 2 1")
}

// A new host gets what is released, and a folder that was changed by hand is put right, once the windows of its stage open.
func TestWhatJoinsAndWhatWasChangedByHandWaitForTheWindowsOfTheirStage(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{ringStage("canary"), with(ringStage("region"), "windows", allow("15"))}})
	s.want("1")
	for host, ring := range map[string]string{"new-canary": "canary", "new-region": "region"} {
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": ring}}
		s.Wanted[host] = map[string]string{"app": host + "-v1-tree"}
	}
	out, _ := s.run(t)
	stands(t, out, rollout.StagePlace{}, 4, 5, rollout.WaitsForWindow, noon.Add(3*time.Hour))
	if out.Decisions["new-region"] != nil || s.Deployed["new-canary"]["app"] == "" {
		t.Errorf("at 13:00, %+v is deployed", s.Deployed)
	}
	again, _ := s.run(t)
	if said := again.RollingOut()["app"]; said != out.RollingOut()["app"] {
		t.Errorf("an hour later it says %v", said)
	}
	if out, _ := s.run(t); s.Deployed["new-region"]["app"] == "" || !out.RolledOut {
		t.Errorf("at 15:00, %+v is deployed: %v", s.Deployed, out.Lines())
	}

	s.Found = s.Deployed.Clone()
	s.Found["region"]["app"], s.Found["canary"]["app"] = "by hand", "by hand"
	now := rollout.Advance(s.StepInput) // at 15:00
	if tree := now.Decisions["region"]["app"].Tree; tree != "region-v1-tree" || len(now.Windowed) != 1 {
		t.Errorf("at 15:00 drift becomes %q, within %d windows", tree, len(now.Windowed))
	}
	s.Now = s.Now.Add(time.Hour)
	now = rollout.Advance(s.StepInput)
	if now.Decisions["region"]["app"].Action != rollout.Keep || now.Decisions["canary"]["app"].Action != rollout.Write ||
		len(now.Windowed) > 0 {
		t.Errorf("at 16:00 drift becomes %+v", now.Decisions)
	}
	if at := noon.Add(27 * time.Hour); now.Progress[0].WaitsFor != rollout.WaitsForWindow || !now.Progress[0].NotBefore.Equal(at) {
		t.Errorf("it waits for %+v, want a window at %s", now.Progress[0], at)
	}
	// What is there counts from now on.
	s.Deployed["region"]["app"], s.State, s.Found["canary"]["app"] = "by hand", now.State, "canary-v1-tree"
	if out, _ := s.run(t); s.Deployed["region"]["app"] != "by hand" || out.RollingOut()["app"] != now.RollingOut()["app"] {
		t.Errorf("then it says %v, and at first %v", out.RollingOut(), now.RollingOut())
	}
	s.Now = s.Now.Add(21 * time.Hour)
	if s.run(t); s.Deployed["region"]["app"] != "region-v1-tree" {
		t.Error("drift is not put right once the windows of its stage open")
	}
}
