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

func number64(text string) json.Number { return json.Number(text) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// site is three hosts with a cluster each, in the rings canary, region and rest, that have version 1 of one
// deployment target since long ago, and want version 2.
type site struct {
	rollout.StepInput
	reports map[string]rollout.Report // by cluster
	commits map[string]folder.Trees
}

func newSite(t *testing.T, settings map[string]any) *site {
	t.Helper()
	given := map[string]any{"stages": []any{ringStage("canary"), ringStage("region")}}
	maps.Copy(given, settings)
	decoded, known, findings := rollout.Decode(given)
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
	s.want("2")
	return s
}

func ringStage(name string) map[string]any {
	return map[string]any{"name": name, "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": name}}}
}

func key(host string) folder.Key { return folder.Key{Host: host, DeploymentTarget: "app"} }

// want makes all hosts want a version.
func (s *site) want(version string) {
	for host := range s.Hosts {
		s.Wanted[host] = map[string]string{"app": host + "-v" + version + "-tree"}
	}
}

// report lets a cluster say something of what it has now.
func (s *site) report(cluster string, is verdict.Verdict) {
	s.reports[cluster] = rollout.Report{Known: true, Tree: s.Deployed[cluster]["app"], Status: verdict.Status{Verdict: is, Since: s.Now}}
}

// run is one run: an hour later it decides, and applies that. It returns what is deployed, by host, as
// versions.
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
	for _, at := range after.Keys() {
		tree, was := after[at.Host][at.DeploymentTarget], s.Deployed[at.Host][at.DeploymentTarget]
		if tree != was {
			s.Records[at] = rollout.Record{Tree: tree, Before: was, Changed: s.Now.Add(time.Minute)}
		}
	}
	s.Deployed, s.State = after, out.State
	return out, s.versions()
}

// versions is such as "2 1 1": of canary, region and rest.
func (s *site) versions() string {
	var versions []string
	for _, host := range []string{"canary", "region", "rest"} {
		_, version, _ := strings.Cut(s.Deployed[host]["app"], "-v")
		version, _, _ = strings.Cut(version, "-")
		versions = append(versions, version)
	}
	return strings.Join(versions, " ")
}

// expect runs, and expects what is deployed then.
func (s *site) expect(t *testing.T, want string) *rollout.Outcome {
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
	out := s.expect(t, "2 1 1")
	if out.RolledOut || len(out.RollingOut()) != 1 ||
		!strings.HasPrefix(
			out.RollingOut()["app"].Text,
			`stage 1 of 3 "canary", 1 of 3 hosts, since 2026-01-01T13:00:00Z, waits for clusters to be ready`,
		) {
		t.Errorf("%v", out.RollingOut())
	}
	s.expect(t, "2 1 1") // nobody has said anything
	s.report("canary", verdict.Progressing)
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	s.report("canary", verdict.Progressing) // what was proven stays proven
	s.report("region", verdict.Ready)
	s.expect(t, "2 2 2")
	s.report("rest", verdict.Ready)
	if out := s.expect(t, "2 2 2"); !out.RolledOut || len(out.State.Targets) > 0 {
		t.Errorf("in the end: %v", out.RollingOut())
	}
}

func TestUnknownIsNeverReady(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	for _, report := range []rollout.Report{
		{}, {Known: true, Tree: "canary-v2-tree", Status: verdict.Status{Verdict: verdict.Unknown}}, {Tree: "canary-v2-tree", Status: verdict.Status{Verdict: verdict.Ready, Since: noon}},
		{Known: true, Tree: "canary-v2-tree", Status: verdict.Status{Verdict: "splendid"}}, {Known: true, Tree: "canary-v1-tree", Status: verdict.Status{Verdict: verdict.Ready}},
	} {
		s.reports["canary"] = report
		s.expect(t, "2 1 1")
	}
}

func TestEvidenceOlderThanTheContentProvesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.Now = s.Now.Add(-3 * time.Hour) // a clock that goes backwards
	s.expect(t, "2 1 1")
	s.Now = s.Now.Add(6 * time.Hour)
	s.expect(t, "2 2 1")
}

func TestSoakCountsFromWhenTheContentBecameReady(t *testing.T) {
	t.Parallel()
	canary := with(ringStage("canary"), "soak", "3h")
	s := newSite(t, map[string]any{"stages": []any{canary, ringStage("region")}})
	s.reports["canary"] = rollout.Report{
		Known:  true,
		Tree:   "canary-v2-tree",
		Status: verdict.Status{Verdict: verdict.Ready},
	} // since nobody knows when
	s.expect(t, "2 1 1")
	s.expect(t, "2 1 1")
	s.expect(t, "2 1 1")
	s.expect(t, "2 1 1")
	s.expect(t, "2 2 1")
}

func TestAnEmptyFeedbackLetsTimeCount(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{with(ringStage("canary"), "soak", "90m"), ringStage("region")}})
	s.Reports = nil
	for _, want := range []string{"2 1 1", "2 1 1", "2 2 1", "2 2 2"} {
		s.expect(t, want)
	}
	if out := s.expect(t, "2 2 2"); !out.RolledOut {
		t.Error(out.Lines())
	}
}

func TestAFailureHaltsAndNewerContentMendsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	s.report("region", verdict.Failed)
	if out := s.expect(t, "2 2 1"); !out.Progress[0].IsHalted() || out.RollingOut()["app"].Condition != rollout.Failed {
		t.Errorf("%v", out.RollingOut())
	}
	s.want("3")
	s.expect(t, "3 2 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "3 3 1")
	s.report("region", verdict.Ready)
	s.expect(t, "3 3 3")
}

func TestAClusterThatIsNotReadyInTimeHasFailed(t *testing.T) {
	t.Parallel()
	for is, fails := range map[verdict.Verdict]bool{verdict.Progressing: true, verdict.Behind: true, verdict.Unknown: true} {
		s := newSite(t, map[string]any{"progress_deadline": "90m"})
		s.expect(t, "2 1 1")
		s.reports["canary"] = rollout.Report{
			Known:  is != verdict.Unknown,
			Tree:   "canary-v2-tree",
			Status: verdict.Status{Verdict: is, Since: s.Now},
		}
		if out := s.expect(t, "2 1 1"); out.Progress[0].IsHalted() {
			t.Errorf("%s fails before the deadline", is)
		}
		if out := s.expect(t, "2 1 1"); out.Progress[0].IsHalted() != fails {
			t.Errorf("%s fails after the deadline: %v", is, out.Progress[0].IsHalted())
		}
	}
}

func TestContentThatFailedIsRolledBackAndNotTriedAgainWithoutApproval(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	first := s.Deployed.Clone()
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 2 1")
	s.report("region", verdict.Failed)
	out := s.expect(t, "1 1 1")
	if !reflect.DeepEqual(s.Deployed, first) || len(out.Windowed) > 0 || out.Decisions["canary"]["app"].Action != rollout.RollBack {
		t.Errorf("went back to %v", s.Deployed)
	}
	s.report("canary", verdict.Ready)
	s.report("region", verdict.Ready)
	out = s.expect(t, "1 1 1")
	s.expect(t, "1 1 1")
	retry := out.Progress[0].Retry
	lost := *s
	lost.State, lost.Lost = nil, true // and the records know it, too
	lost.expect(t, "1 1 1")
	s.Settings.Approvals = []string{retry}
	if out := s.expect(t, "2 1 1"); out.Progress[0].Content == "" || out.RollingOut()["app"].Approval != retry {
		t.Errorf("tried again as %q: %v", retry, out.RollingOut())
	}
	s.expect(t, "2 1 1")
}

func TestContentThatFailedStaysWhereTheContentBeforeIsNotKnown(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"on_failure": "roll_back"})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Failed)
	s.State, s.Lost = nil, true
	if out := s.expect(t, "2 1 1"); len(out.Notes) == 0 || out.Notes[0].Kind != rollout.NoWayBack {
		t.Errorf("notes %q", out.Notes)
	}
}

func TestApprovalIsOfTheContent(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]any{"stages": []any{ringStage("canary"), with(ringStage("region"), "approval", true)}})
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	out := s.expect(t, "2 1 1")
	if out.Progress[0].WaitsFor != rollout.WaitsForApproval {
		t.Errorf("%v", out.Lines())
	}
	approval := "app@" + out.Progress[0].Content
	s.want("3")
	s.Settings.Approvals = []string{approval}
	if out := s.expect(t, "3 1 1"); len(out.Notes) == 0 || out.Notes[0].Kind != rollout.ApprovesOld {
		t.Errorf("notes %q", out.Notes)
	}
	s.report("canary", verdict.Ready)
	out = s.expect(t, "3 1 1")
	s.Settings.Approvals = []string{"app@" + out.Progress[0].Content}
	s.expect(t, "3 3 1")
}

func TestHoldsKeepFolders(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Holds = []rollout.FolderHold{{Hosts: []string{"canary"}, Until: noon.Add(150 * time.Minute)}}
	s.expect(t, "1 1 1") // the only host of a stage: it proves nothing
	s.expect(t, "1 1 1")
	s.expect(t, "2 1 1") // the hold has ended
	s.Holds = []rollout.FolderHold{{DeploymentTargets: []string{"app"}, Hosts: []string{"region"}}}
	s.report("canary", verdict.Ready)
	s.expect(t, "2 1 1")
	s.Settings = nil
	s.Holds = []rollout.FolderHold{{DeploymentTargets: []string{"app"}, Hosts: []string{"region"}}}
	if out := s.expect(t, "2 1 2"); out.RolledOut {
		t.Error("what is held counts as rolled out")
	}
}

func TestWithoutARolloutEverythingGoesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Settings = nil
	if out := s.expect(t, "2 2 2"); !out.RolledOut || len(out.Progress) > 0 {
		t.Errorf("%v", out.Lines())
	}
}

func TestNewHostsGetWhatIsReleasedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.want("1")
	s.Hosts["new"], s.Wanted["new"] = &rollout.FleetHost{TypeLabels: fleet.Labels{"ring": "region"}}, map[string]string{"app": "new-v1-tree"}
	if out := s.expect(t, "1 1 1"); s.Deployed["new"]["app"] != "new-v1-tree" || !out.RolledOut {
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
	s.expect(t, "1 1 1")
	for _, host := range []string{"canary", "rest"} {
		s.reports[host] = rollout.Report{Known: true, Tree: "base-new", Status: verdict.Status{Verdict: verdict.Ready, Since: s.Now}}
	}
	s.expect(t, "2 1 2")
}

func TestAnOpenPullRequestHoldsTheNextStep(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Proposed = true
	s.expect(t, "2 1 1")
	s.report("canary", verdict.Ready)
	s.expect(t, "2 1 1")
	s.Proposed = false
	s.expect(t, "2 2 1")
}

func TestContentThatIsNotKnownYetDecidesNothing(t *testing.T) {
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
