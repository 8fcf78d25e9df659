package rollout_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func jsonNumber(text string) json.Number { return json.Number(text) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// site has three hosts with a cluster each, in the rings canary, region and rest. They have had version 1 of a deployment target
// for a long time, and want version 2.
type site struct {
	rollout.StepInput
	reports map[string]rollout.Report // by cluster
	commits map[string]folder.Trees
}

func newSite(t *testing.T, settings map[string]any) *site {
	t.Helper()
	config := map[string]any{"stages": []any{ringStage("canary"), ringStage("region")}}
	maps.Copy(config, settings)
	decoded, known, findings := rollout.Decode(config)
	if !known || len(findings) > 0 {
		t.Fatal(known, findings)
	}
	s := &site{reports: map[string]rollout.Report{}, commits: map[string]folder.Trees{}}
	s.StepInput = rollout.StepInput{
		Now: noon, Wanted: folder.Trees{}, Deployed: folder.Trees{}, Hosts: map[string]*rollout.FleetHost{}, Settings: decoded,
		Records: map[folder.Key]rollout.Record{}, State: &rollout.StepState{}, Tip: "first", Back: map[string]folder.Trees{},
	}
	for _, host := range []string{"canary", "region", "rest"} {
		s.Hosts[host] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": host}, Clusters: []string{host}}
		s.Deployed[host] = map[string]string{"app": host + "-v1-tree"}
		s.Records[key(host)] = rollout.Record{Tree: host + "-v1-tree", Changed: noon.Add(-48 * time.Hour)}
	}
	s.commits["first"] = s.Deployed.Clone()
	s.Reports = func(cluster string, _ folder.Key) rollout.Report { return s.reports[cluster] }
	s.wantVersion("2")
	return s
}

func ringStage(name string) map[string]any {
	return map[string]any{"name": name, "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": name}}}
}

func key(host string) folder.Key { return folder.Key{Host: host, DeploymentTarget: "app"} }

// wantVersion sets the wanted version of all hosts.
func (s *site) wantVersion(version string) {
	for host := range s.Hosts {
		s.Wanted[host] = map[string]string{"app": host + "-v" + version + "-tree"}
	}
}

// setReport sets the report of a cluster on its deployed content.
func (s *site) setReport(cluster string, status verdict.Verdict) {
	s.reports[cluster] = rollout.Report{Known: true, Tree: s.Deployed[cluster]["app"], Status: verdict.Status{Verdict: status, Since: s.Now}}
}

// run decides and applies a step an hour later. It returns the deployed versions.
func (s *site) run(t *testing.T) (*rollout.Outcome, string) {
	t.Helper()
	s.Now = s.Now.Add(time.Hour)
	out := rollout.Advance(s.StepInput)
	for _, commit := range out.Missing {
		s.Back[commit] = s.commits[commit]
	}
	if len(out.Missing) > 0 {
		out = rollout.Advance(s.StepInput)
	}
	after := out.Decisions.Trees(s.Deployed)
	for _, key := range after.Keys() {
		tree, before := after[key.Host][key.DeploymentTarget], s.Deployed[key.Host][key.DeploymentTarget]
		if tree != before {
			s.Records[key] = rollout.Record{Tree: tree, Before: before, Changed: s.Now.Add(time.Minute)}
		}
	}
	s.Deployed, s.State = after, out.State
	return out, s.versions()
}

// versions returns the deployed versions of canary, region and rest, such as "2 1 1".
func (s *site) versions() string {
	var versions []string
	for _, host := range []string{"canary", "region", "rest"} {
		_, version, _ := strings.Cut(s.Deployed[host]["app"], "-v")
		version, _, _ = strings.Cut(version, "-")
		versions = append(versions, version)
	}
	return strings.Join(versions, " ")
}

// expectVersions runs a step and expects the deployed versions.
func (s *site) expectVersions(t *testing.T, want string) *rollout.Outcome {
	t.Helper()
	out, got := s.run(t)
	if got != want {
		t.Fatalf("deployed %q, want %q: %v", got, want, out.Lines())
	}
	return out
}

func TestAChangeGoesFromStageToStageAsItIsProven(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	out := s.expectVersions(t, "2 1 1")
	if out.RolledOut || len(out.RollingOut()) != 1 ||
		!strings.HasPrefix(
			out.RollingOut()["app"].Text,
			`stage 1 of 3 "canary", 1 of 3 hosts, since 2026-01-01T13:00:00Z, waits for clusters to be ready`,
		) {
		t.Errorf("%v", out.RollingOut())
	}
	s.expectVersions(t, "2 1 1") // without a report
	s.setReport("canary", verdict.Progressing)
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	s.setReport("canary", verdict.Progressing) // proven content stays proven
	s.setReport("region", verdict.Ready)
	s.expectVersions(t, "2 2 2")
	s.setReport("rest", verdict.Ready)
	if out := s.expectVersions(t, "2 2 2"); !out.RolledOut || len(out.State.Targets) > 0 {
		t.Errorf("in the end: %v", out.RollingOut())
	}
}

func TestUnknownIsNeverReady(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	for _, report := range []rollout.Report{
		{}, {Known: true, Tree: "canary-v2-tree", Status: verdict.Status{Verdict: verdict.Unknown}}, {Tree: "canary-v2-tree", Status: verdict.Status{Verdict: verdict.Ready, Since: noon}},
		{Known: true, Tree: "canary-v2-tree", Status: verdict.Status{Verdict: "splendid"}}, {Known: true, Tree: "canary-v1-tree", Status: verdict.Status{Verdict: verdict.Ready}},
	} {
		s.reports["canary"] = report
		s.expectVersions(t, "2 1 1")
	}
}

func TestEvidenceOlderThanTheContentProvesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.Now = s.Now.Add(-3 * time.Hour) // a clock that goes backwards
	s.expectVersions(t, "2 1 1")
	s.Now = s.Now.Add(6 * time.Hour)
	s.expectVersions(t, "2 2 1")
}

func TestSoakCountsFromWhenTheContentBecameReady(t *testing.T) {
	t.Parallel()
	canary := withAttribute(ringStage("canary"), "soak", "3h")
	s := newSite(t, map[string]any{"stages": []any{canary, ringStage("region")}})
	s.reports["canary"] = rollout.Report{
		Known:  true,
		Tree:   "canary-v2-tree",
		Status: verdict.Status{Verdict: verdict.Ready},
	} // ready since an unknown time
	s.expectVersions(t, "2 1 1")
	s.expectVersions(t, "2 1 1")
	s.expectVersions(t, "2 1 1")
	s.expectVersions(t, "2 1 1")
	s.expectVersions(t, "2 2 1")
}

func TestTimeProvesContentWithoutFeedback(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{withAttribute(ringStage("canary"), "soak", "90m"), ringStage("region")}})
	s.Reports = nil
	for _, want := range []string{"2 1 1", "2 1 1", "2 2 1", "2 2 2"} {
		s.expectVersions(t, want)
	}
	if out := s.expectVersions(t, "2 2 2"); !out.RolledOut {
		t.Error(out.Lines())
	}
}

func TestAFailureHaltsAndNewerContentMendsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	s.setReport("region", verdict.Failed)
	if out := s.expectVersions(t, "2 2 1"); !out.Progress[0].IsHalted() || out.RollingOut()["app"].Condition != rollout.Failed {
		t.Errorf("%v", out.RollingOut())
	}
	s.wantVersion("3")
	s.expectVersions(t, "3 2 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "3 3 1")
	s.setReport("region", verdict.Ready)
	s.expectVersions(t, "3 3 3")
}

func TestAClusterNotReadyByTheDeadlineHasFailed(t *testing.T) {
	t.Parallel()
	for status, fails := range map[verdict.Verdict]bool{verdict.Progressing: true, verdict.Behind: true, verdict.Unknown: true} {
		s := newSite(t, map[string]any{"progress_deadline": "90m"})
		s.expectVersions(t, "2 1 1")
		s.reports["canary"] = rollout.Report{
			Known:  status != verdict.Unknown,
			Tree:   "canary-v2-tree",
			Status: verdict.Status{Verdict: status, Since: s.Now},
		}
		if out := s.expectVersions(t, "2 1 1"); out.Progress[0].IsHalted() {
			t.Errorf("%s fails before the deadline", status)
		}
		if out := s.expectVersions(t, "2 1 1"); out.Progress[0].IsHalted() != fails {
			t.Errorf("%s after the deadline: got halted %v, want %v", status, out.Progress[0].IsHalted(), fails)
		}
	}
}

func TestFailedContentIsRolledBackAndRetriedOnlyWithApproval(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	first := s.Deployed.Clone()
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 2 1")
	s.setReport("region", verdict.Failed)
	out := s.expectVersions(t, "1 1 1")
	if !reflect.DeepEqual(s.Deployed, first) || len(out.Windowed) > 0 || out.Decisions["canary"]["app"].Action != rollout.RollBack {
		t.Errorf("rolled back to %v, want %v", s.Deployed, first)
	}
	s.setReport("canary", verdict.Ready)
	s.setReport("region", verdict.Ready)
	out = s.expectVersions(t, "1 1 1")
	s.expectVersions(t, "1 1 1")
	retry := out.Progress[0].Retry
	lost := *s
	lost.State, lost.Lost = nil, true // the records have the rollback, too
	lost.expectVersions(t, "1 1 1")
	s.Settings.Approvals = []string{retry}
	if out := s.expectVersions(t, "2 1 1"); out.Progress[0].Content == "" || out.RollingOut()["app"].Approval != retry {
		t.Errorf("tried again as %q: %v", retry, out.RollingOut())
	}
	s.expectVersions(t, "2 1 1")
}

func TestFailedContentStaysIfTheFormerContentIsUnknown(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Failed)
	s.State, s.Lost = nil, true
	if out := s.expectVersions(t, "2 1 1"); len(out.Notes) == 0 || out.Notes[0].Kind != rollout.NoWayBack {
		t.Errorf("notes %q", out.Notes)
	}
}

func TestApprovalIsBoundToContent(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{ringStage("canary"), withAttribute(ringStage("region"), "approval", true)}})
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	out := s.expectVersions(t, "2 1 1")
	if out.Progress[0].WaitsFor != rollout.WaitsForApproval {
		t.Errorf("%v", out.Lines())
	}
	approval := "app@" + out.Progress[0].Content
	s.wantVersion("3")
	s.Settings.Approvals = []string{approval}
	if out := s.expectVersions(t, "3 1 1"); len(out.Notes) == 0 || out.Notes[0].Kind != rollout.ApprovesOld {
		t.Errorf("notes %q", out.Notes)
	}
	s.setReport("canary", verdict.Ready)
	out = s.expectVersions(t, "3 1 1")
	s.Settings.Approvals = []string{"app@" + out.Progress[0].Content}
	s.expectVersions(t, "3 3 1")
}

func TestHoldsKeepFolders(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"canary"}, Until: noon.Add(150 * time.Minute)}}
	s.expectVersions(t, "1 1 1") // a stage with only held hosts is not proven
	s.expectVersions(t, "1 1 1")
	s.expectVersions(t, "2 1 1") // the hold has ended
	s.Holds = []rollout.FolderHold{{DeploymentTargets: []string{"app"}, Hosts: []string{"region"}}}
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 1 1")
	s.Settings = nil
	s.Holds = []rollout.FolderHold{{DeploymentTargets: []string{"app"}, Hosts: []string{"region"}}}
	if out := s.expectVersions(t, "2 1 2"); out.RolledOut {
		t.Error("a held host counts as rolled out")
	}
}

func TestWithoutARolloutEverythingIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Settings = nil
	if out := s.expectVersions(t, "2 2 2"); !out.RolledOut || len(out.Progress) > 0 {
		t.Errorf("%v", out.Lines())
	}
}

func TestNewHostsGetReleasedContentAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.wantVersion("1")
	s.Hosts["new"], s.Wanted["new"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "region"}}, map[string]string{"app": "new-v1-tree"}
	if out := s.expectVersions(t, "1 1 1"); s.Deployed["new"]["app"] != "new-v1-tree" || !out.RolledOut {
		t.Errorf("a new host has %v, %v", s.Deployed["new"], out.Lines())
	}
}

func TestARequiredTargetIsProvenFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{}})
	for host := range s.Wanted {
		s.Wanted[host]["base"], s.Deployed[host]["base"] = "base-new", "base-old"
	}
	s.Requires = func(k folder.Key) []folder.Key {
		if k.DeploymentTarget == "app" {
			return []folder.Key{{Host: k.Host, DeploymentTarget: "base"}}
		}
		return nil
	}
	s.expectVersions(t, "1 1 1")
	for _, host := range []string{"canary", "rest"} {
		s.reports[host] = rollout.Report{Known: true, Tree: "base-new", Status: verdict.Status{Verdict: verdict.Ready, Since: s.Now}}
	}
	s.expectVersions(t, "2 1 2")
}

func TestAnOpenPullRequestHoldsTheNextStep(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Proposed = true
	s.expectVersions(t, "2 1 1")
	s.setReport("canary", verdict.Ready)
	s.expectVersions(t, "2 1 1")
	s.Proposed = false
	s.expectVersions(t, "2 2 1")
}

func TestUnknownContentDecidesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Wanted["region"]["app"] = ""
	out := rollout.Advance(s.StepInput)
	if !out.Undecided || out.RolledOut {
		t.Errorf("%+v", out)
	}
	for _, host := range []string{"canary", "region", "rest"} {
		if got := out.Decisions[host]["app"]; got != (rollout.Decision{Action: rollout.Write}) {
			t.Errorf("%s: %+v", host, got)
		}
	}
}
