package rollout_test

import (
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestALostStateRestartsNoStage(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	s.reports = map[string]rollout.Report{}
	s.State, s.Lost = nil, true
	out := s.expectVersions(t, "2 2 1")
	if s.Lost = false; out.Progress[0].Stage != 2 {
		t.Errorf("the rollout starts again: %v", out.RollingOut())
	}
	s.setReport("region", verdict.Ready)
	s.expectVersions(t, "2 2 2")
}

// Only the times in the records tell hosts of this change from hosts that have had the wanted content for long.
func TestOldContentProvesNothingAfterALostState(t *testing.T) {
	t.Parallel()
	stage := ringStage("canary")
	stage["ready_percent"] = jsonNumber("50")
	s := newSite(t, map[string]any{"stages": []any{stage}})
	s.Hosts["old"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "canary"}, Clusters: []string{"old"}}
	s.Deployed["old"] = map[string]string{"app": "old-v1-tree"}
	s.Records[key("old")] = rollout.Record{Tree: "old-v1-tree", Changed: noon.Add(-48 * time.Hour)}
	s.Wanted["old"] = map[string]string{"app": "old-v1-tree"} // the change does not reach it
	s.setReport("old", verdict.Ready)
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Progressing)
	s.State, s.Lost = nil, true
	s.expectVersions(t, "2 1 1")
	s.Lost = false
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 2")
}

func TestOldContentIsOutsideAShareAfterALostState(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{map[string]any{"name": "share", "percent": jsonNumber("30")}}})
	s.Wanted["canary"] = map[string]string{"app": "canary-v1-tree"} // the change does not reach it
	s.setReport("canary", verdict.Ready)
	s.State, s.Lost = nil, true
	if out, got := s.run(t); got != "1 2 1" && got != "1 1 2" {
		t.Errorf("deployed %q: %v", got, out.Lines())
	}
}

func TestAManualRollbackIsNoFailureAfterALostState(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil) // on_failure is halt, so nothing is rolled back automatically
	s.expectVersions(t, "2 1 1")
	s.wantVersion("1")
	s.State, s.Lost = nil, true
	s.expectVersions(t, "1 1 1")
}

// A passed stage may have unproven hosts, which were held at the time.
func TestTheFailureOfAPassedStageOutlivesALostState(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"second"}}}
	s.Hosts["second"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "canary"}, Clusters: []string{"second"}}
	s.Deployed["second"] = map[string]string{"app": "second-v2-tree"}
	s.Records[key("second")] = rollout.Record{Tree: "second-v2-tree", Changed: noon}
	s.wantVersion("2")
	s.setReport("second", verdict.Failed)
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	s.Holds, s.State, s.Lost = nil, nil, true
	s.expectVersions(t, "2 2 1")
	s.Lost = false
	s.Wanted["region"] = map[string]string{"app": "region-v3-tree"} // newer content, not for the second host
	s.expectVersions(t, "2 2 1")
	s.setReport("second", verdict.Ready)
	s.expectVersions(t, "2 3 1")
}
