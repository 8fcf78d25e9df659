package rollout_test

import (
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestClosedWindowsDelayEveryWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"windows": []any{map[string]any{"kind": "allow", "schedule": "0 15 * * *", "duration": "1h"}}})
	out := s.expectVersions(t, "1 1 1")
	if !out.Closed || len(out.Windowed) > 0 || out.RolledOut {
		t.Errorf("13:00 is closed: %+v", out)
	}
	s.Hosts["new"], s.Wanted["new"] = &rollout.FleetHost{}, map[string]string{}
	if out := s.expectVersions(t, "1 1 1"); out.Decisions["new"] != nil {
		t.Error("a new host is written while windows are closed")
	}
	if out := s.expectVersions(t, "2 1 1"); out.Closed || len(out.Windowed) != 1 {
		t.Errorf("15:00 is open: %+v", out)
	}
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 1 1")
	s.Settings.Expedite = []string{"app"}
	if out := s.expectVersions(t, "2 2 2"); len(out.Windowed) > 0 || out.RolledOut {
		t.Errorf("an expedited change needs no window, but still needs proof: %+v", out)
	}
}

// dailyWindow opens each day at the given hour for an hour.
func dailyWindow(hour string) []any {
	return []any{map[string]any{"kind": "allow", "schedule": "0 " + hour + " * * *", "duration": "1h"}}
}

func TestAStageHasWindowsOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{
		"stages":  []any{ringStage("canary"), withAttribute(ringStage("region"), "windows", dailyWindow("16"))},
		"windows": []any{map[string]any{"kind": "deny", "schedule": "0 18 * * *", "duration": "1h"}},
	})
	out := s.expectVersions(t, "2 1 1") // at 13:00
	if len(out.Windowed) != 1 {
		t.Errorf("canary: got %d lists of windows, want 1", len(out.Windowed))
	}
	s.setReport("canary", verdict.Ready)
	out = s.expectVersions(t, "2 1 1")
	expectPlace(t, out, rollout.StagePlace{Stage: 2, Stages: 3, Name: "region"}, 1, 3, rollout.WaitsForWindow, noon.Add(4*time.Hour))
	if out.Closed || len(out.Windowed) > 0 {
		t.Errorf("while region waits: got %+v", out)
	}
	if again := s.expectVersions(t, "2 1 1").RollingOut(); again["app"] != out.RollingOut()["app"] {
		t.Errorf("an hour later: got %v, want %v", again, out.RollingOut())
	}
	if out := s.expectVersions(t, "2 2 1"); len(out.Windowed) != 2 {
		t.Errorf("region: got %d lists of windows, want 2", len(out.Windowed))
	}
	s.setReport("region", verdict.Ready)
	if out := s.expectVersions(t, "2 2 2"); len(out.Windowed) != 1 { // the last stage has no windows
		t.Errorf("the last stage: got %d lists of windows, want 1", len(out.Windowed))
	}
}

func TestWindowsOfAStageDelayNoExpeditedChangeOrRollback(t *testing.T) {
	t.Parallel()
	never := []any{map[string]any{"kind": "allow", "schedule": "0 0 29 2 *", "duration": "1h"}}
	closed := func() map[string]any {
		return map[string]any{"stages": []any{withAttribute(ringStage("canary"), "windows", never), ringStage("region")}}
	}
	s := newSite(t, withAttribute(closed(), "expedite", []any{"app"}))
	if out := s.expectVersions(t, "2 2 2"); len(out.Windowed) > 0 {
		t.Error("the expedited change needs a window")
	}
	s = newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Failed)
	s.Settings.Stages[0].Windows = newSite(t, closed()).Settings.Stages[0].Windows
	if out := s.expectVersions(t, "1 1 1"); len(out.Windowed) > 0 {
		t.Error("the automatic rollback needs a window")
	}
	s = newSite(t, closed())
	delete(s.Hosts, "canary") // canary left the fleet
	delete(s.Wanted, "canary")
	s.expectVersions(t, " 2 1")
}

// New hosts get the released content, and folders changed by hand are repaired, once the windows of their stage open.
func TestNewHostsAndRepairsWaitForTheWindowsOfTheirStage(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{ringStage("canary"), withAttribute(ringStage("region"), "windows", dailyWindow("15"))}})
	s.wantVersion("1")
	for host, ring := range map[string]string{"new-canary": "canary", "new-region": "region"} {
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": ring}}
		s.Wanted[host] = map[string]string{"app": host + "-v1-tree"}
	}
	out, _ := s.run(t)
	expectPlace(t, out, rollout.StagePlace{}, 4, 5, rollout.WaitsForWindow, noon.Add(3*time.Hour))
	if out.Decisions["new-region"] != nil || s.Deployed["new-canary"]["app"] == "" {
		t.Errorf("at 13:00, %+v is deployed", s.Deployed)
	}
	again, _ := s.run(t)
	if got := again.RollingOut()["app"]; got != out.RollingOut()["app"] {
		t.Errorf("an hour later: got %v, want %v", got, out.RollingOut()["app"])
	}
	if out, _ := s.run(t); s.Deployed["new-region"]["app"] == "" || !out.RolledOut {
		t.Errorf("at 15:00, %+v is deployed: %v", s.Deployed, out.Lines())
	}

	s.Found = s.Deployed.Clone()
	s.Found["region"]["app"], s.Found["canary"]["app"] = "by hand", "by hand"
	now := rollout.Advance(s.StepInput) // at 15:00
	if tree := now.Decisions["region"]["app"].Tree; tree != "region-v1-tree" || len(now.Windowed) != 1 {
		t.Errorf("at 15:00: got %q within %d lists of windows", tree, len(now.Windowed))
	}
	s.Now = s.Now.Add(time.Hour)
	now = rollout.Advance(s.StepInput)
	if now.Decisions["region"]["app"].Action != rollout.Keep || now.Decisions["canary"]["app"].Action != rollout.Write ||
		len(now.Windowed) > 0 {
		t.Errorf("at 16:00: got %+v", now.Decisions)
	}
	if at := noon.Add(27 * time.Hour); now.Progress[0].WaitsFor != rollout.WaitsForWindow || !now.Progress[0].NotBefore.Equal(at) {
		t.Errorf("got %+v, want a window at %s", now.Progress[0], at)
	}
	// The next step compares with the found content.
	s.Deployed["region"]["app"], s.State, s.Found["canary"]["app"] = "by hand", now.State, "canary-v1-tree"
	if out, _ := s.run(t); s.Deployed["region"]["app"] != "by hand" || out.RollingOut()["app"] != now.RollingOut()["app"] {
		t.Errorf("in the next step: got %v, want %v", out.RollingOut(), now.RollingOut())
	}
	s.Now = s.Now.Add(21 * time.Hour)
	if s.run(t); s.Deployed["region"]["app"] != "region-v1-tree" {
		t.Error("the folder changed by hand is not repaired after the windows of its stage open")
	}
}
