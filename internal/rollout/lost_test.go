package rollout_test

import (
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestALostStateStartsNothingAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	s.reports = map[string]rollout.Report{}
	s.State, s.Lost = nil, true
	out := s.expect(t, "2 2 1")
	if s.Lost = false; out.Progress[0].Stage != 2 {
		t.Errorf("begins again: %v", out.RollingOut())
	}
	s.report("region", verdict.Ready)
	s.expect(t, "2 2 2")
}

// Of which hosts got what is wanted in this change, and which long ago, the records tell only when.
func TestWhatHasBeenThereForLongProvesNothingAfterALostState(t *testing.T) {
	t.Parallel()
	stage := ringStage("canary")
	stage["ready_percent"] = number64("50")
	s := newSite(t, map[string]any{"stages": []any{stage}})
	s.Hosts["old"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "canary"}, Clusters: []string{"old"}}
	s.Deployed["old"] = map[string]string{"app": "old-v1-tree"}
	s.Records[key("old")] = rollout.Record{Tree: "old-v1-tree", Changed: noon.Add(-48 * time.Hour)}
	s.Wanted["old"] = map[string]string{"app": "old-v1-tree"} // the change does not reach it
	s.report("old", verdict.Ready)
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Progressing)
	s.State, s.Lost = nil, true
	s.expect(t, "2 1 1")
	s.Lost = false
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 2")
}

func TestAShareIsNotMadeOfWhatHasBeenThereForLongAfterALostState(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{map[string]any{"name": "share", "percent": number64("30")}}})
	s.Wanted["canary"] = map[string]string{"app": "canary-v1-tree"} // the change does not reach it
	s.report("canary", verdict.Ready)
	s.State, s.Lost = nil, true
	if out, got := s.run(t); got != "1 2 1" && got != "1 1 2" {
		t.Errorf("deployed %q: %v", got, out.Lines())
	}
}

func TestGoingBackByHandIsNoFailureAfterALostState(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil) // which halts, so that nothing goes back by itself
	s.expect(t, "2 1 1")
	s.want("1")
	s.State, s.Lost = nil, true
	s.expect(t, "1 1 1")
}

// Hosts of a stage that was passed were not all proven: some may have been held then.
func TestAFailureOfAStageThatWasPassedIsNotForgottenWithTheState(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"second"}}}
	s.Hosts["second"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "canary"}, Clusters: []string{"second"}}
	s.Deployed["second"] = map[string]string{"app": "second-v2-tree"}
	s.Records[key("second")] = rollout.Record{Tree: "second-v2-tree", Changed: noon}
	s.want("2")
	s.report("second", verdict.Failed)
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	s.Holds, s.State, s.Lost = nil, nil, true
	s.expect(t, "2 2 1")
	s.Lost = false
	s.Wanted["region"] = map[string]string{"app": "region-v3-tree"} // newer content, which does not reach the second
	s.expect(t, "2 2 1")
	s.report("second", verdict.Ready)
	s.expect(t, "2 3 1")
}
