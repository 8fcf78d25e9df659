package rollout_test

import (
	"fmt"
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

// valuesSite rolls out versions of Kubernetes to a canary and two clusters of a region.
type valuesSite struct {
	rollout.Values
	has     map[string]string // reported values by cluster
	verdict map[string]verdict.Verdict
}

func newValuesSite(t testing.TB, settings map[string]any) *valuesSite {
	t.Helper()
	config := map[string]any{"stages": []any{ringStage("canary")}}
	maps.Copy(config, settings)
	decoded, _, findings := rollout.Decode(config)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	s := &valuesSite{has: map[string]string{}, verdict: map[string]verdict.Verdict{}}
	s.Values = rollout.Values{
		Name: "kubernetes", Now: noon, Wanted: rollout.ByCluster{All: "1.31"}, Settings: decoded, Hosts: map[string]*rollout.FleetHost{},
		Proof: func(cluster, value string) rollout.Observed {
			has, ok := s.has[cluster]
			return rollout.Observed{Heard: ok, Known: ok, Has: ok && has == value}
		},
		Reports: func(_ rollout.StepInput, given func(string, folder.Key) rollout.Report) func(string, folder.Key) rollout.Report {
			return func(cluster string, key folder.Key) rollout.Report {
				report := given(cluster, key)
				if report.Verdict == verdict.Ready {
					report.Status = verdict.Status{Verdict: s.verdict[cluster], Since: noon}
				}
				return report
			}
		},
	}
	for _, cluster := range []string{"canary", "region-a", "region-b"} {
		s.addCluster(cluster)
	}
	return s
}

func (s *valuesSite) addCluster(cluster string) {
	ring, _, _ := strings.Cut(cluster, "-")
	labels := fleet.Labels{"ring": ring}
	s.Hosts[cluster] = &rollout.FleetHost{IsCluster: true, Labels: labels, TypeLabels: labels, Clusters: []string{cluster}}
}

// reportAll makes all clusters report a value and be ready.
func (s *valuesSite) reportAll(value string) {
	for cluster := range s.Hosts {
		s.has[cluster], s.verdict[cluster] = value, verdict.Ready
	}
}

// run decides a step half an hour later.
func (s *valuesSite) run() *rollout.ValuesOutcome {
	s.Now = s.Now.Add(30 * time.Minute)
	out := rollout.AdvanceValues(s.Values)
	s.Memory = out.Memory
	return out
}

// expectValues runs a step and expects values, ordered by cluster name.
func (s *valuesSite) expectValues(t *testing.T, want string) *rollout.ValuesOutcome {
	t.Helper()
	out := s.run()
	var got []string
	for _, key := range (folder.Trees{"": out.Values}).Keys() {
		got = append(got, out.Values[key.DeploymentTarget])
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got values %q, want %q: %v", text, want, out.Lines())
	}
	return out
}

func TestAValueReachesOneStageAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, nil)
	s.reportAll("1.30")
	s.Released.All = "1.30"
	s.expectValues(t, "1.31 1.30 1.30")
	s.expectValues(t, "1.31 1.30 1.30") // the canary does not report it yet
	s.has["canary"] = "1.31"
	s.expectValues(t, "1.31 1.31 1.31")
	s.reportAll("1.31")
	if out := s.expectValues(t, "1.31 1.31 1.31"); !out.RolledOut {
		t.Errorf("not rolled out: %v", out.Lines())
	}
	s.Wanted.All = "1.32"
	s.expectValues(t, "1.32 1.31 1.31")
}

func TestAFailedValueIsRolledBackOrHalts(t *testing.T) {
	t.Parallel()
	for onFailure, want := range map[string]string{"halt": "1.31 1.30 1.30", "roll_back": "1.30 1.30 1.30"} {
		s := newValuesSite(t, map[string]any{"on_failure": onFailure})
		s.reportAll("1.30")
		s.Released.All = "1.30"
		s.expectValues(t, "1.31 1.30 1.30")
		s.has["canary"], s.verdict["canary"] = "1.31", verdict.Failed
		out := s.expectValues(t, want)
		if s.expectValues(t, want); !out.Progress[0].IsHalted() || out.RolledOut {
			t.Errorf("%s: %v", onFailure, out.Lines())
		}
		s.Wanted.All = "1.31.1"
		s.expectValues(t, "1.31.1 1.30 1.30")
	}
}

// The first value of a rollout is released until another value is.
func TestANewClusterGetsTheReleasedValue(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, nil)
	s.expectValues(t, "1.31 1.31 1.31") // no cluster exists yet
	s.reportAll("1.31")
	s.run()
	s.Wanted.All = "1.32"
	s.expectValues(t, "1.32 1.31 1.31")
	s.addCluster("canary-2") // joins the current stage
	s.expectValues(t, "1.32 1.32 1.31 1.31")
	s.addCluster("region-c")
	s.expectValues(t, "1.32 1.32 1.31 1.31 1.31")
	s.has["canary"], s.has["canary-2"], s.verdict["canary-2"] = "1.32", "1.32", verdict.Ready
	s.expectValues(t, "1.32 1.32 1.32 1.32 1.32")
	s.reportAll("1.32")
	s.run()
	s.addCluster("region-d")
	s.Settings.Windows = closedWindows(t)
	if out := s.expectValues(t, "1.32 1.32 1.32 1.32 1.32 1.32"); !out.RolledOut {
		t.Errorf("a new cluster with the released value is a change: %v", out.Lines())
	}
	delete(s.Hosts, "region-a")
	s.expectValues(t, "1.32 1.32 1.32 1.32 1.32")
}

func TestTheFirstStepUpgradesNoExistingCluster(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, nil)
	s.reportAll("1.30")
	if out := s.run(); fmt.Sprint(out.Unplaced) != "[canary region-a region-b]" || len(out.Values) > 0 {
		t.Errorf("unplaced %v, values %v", out.Unplaced, out.Values)
	}
	s.Memory, s.Released.All = nil, "1.29" // a version of no cluster
	if out := s.run(); len(out.Unplaced) != 3 {
		t.Errorf("unplaced %v", out.Unplaced)
	}
	s.Memory, s.Released.Each = nil, map[string]string{"canary": "1.30", "region-a": "1.30", "region-b": "1.30"}
	s.expectValues(t, "1.31 1.30 1.30")
	s.Memory, s.Released, s.has = nil, rollout.ByCluster{}, map[string]string{"region-a": "1.31"}
	s.verdict["region-a"] = verdict.Ready
	if out := s.expectValues(t, "1.31 1.31 1.31"); fmt.Sprint(out.AtOnce) != "[canary region-b]" {
		t.Errorf("at once: %v", out.AtOnce)
	}
}

func TestALostStateUpgradesNoCluster(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, map[string]any{"on_failure": "roll_back"})
	s.reportAll("1.30")
	s.Released.All = "1.30"
	s.expectValues(t, "1.31 1.30 1.30")
	s.has["canary"], s.verdict["canary"] = "1.31", verdict.Progressing
	s.Memory = nil
	s.expectValues(t, "1.31 1.30 1.30")
	s.verdict["canary"] = verdict.Failed
	s.run()
	s.expectValues(t, "1.30 1.30 1.30") // the rollback assigns the released value
	s.Memory = nil
	s.has["canary"] = "1.31" // the cluster has not rolled back yet
	s.Released = rollout.ByCluster{Each: map[string]string{"region-a": "1.30", "region-b": "1.30"}}
	s.run()
	if out := s.expectValues(t, "1.31 1.30 1.30"); len(out.Notes) == 0 || out.Notes[0].Kind != rollout.NoWayBack || out.Notes[0].Other != "Set released, or want another value" {
		t.Errorf("notes %q", out.Notes)
	}
}

func TestClustersMayHaveTheirOwnValues(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, nil)
	s.Wanted = rollout.ByCluster{Each: map[string]string{"canary": "a", "region-a": "b", "region-b": "c"}}
	s.expectValues(t, "a b c")
	for cluster, value := range s.Wanted.Each {
		s.has[cluster], s.verdict[cluster] = value, verdict.Ready
	}
	s.run()
	s.Wanted.Each = map[string]string{"canary": "d", "region-a": "b", "region-b": "e"}
	s.expectValues(t, "d b c")
}

func TestUnknownValuesReachNoCluster(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, nil)
	s.expectValues(t, "1.31 1.31 1.31")
	s.Wanted.Unknown = true
	s.Holds = []rollout.FolderHold{{Hosts: []string{"region-a"}}}
	if out := rollout.AdvanceValues(s.Values); !out.Undecided ||
		!reflect.DeepEqual(out.Values, map[string]string{"canary": "", "region-a": "1.31", "region-b": ""}) {
		t.Errorf("values %v", out.Values)
	}
}

// A renamed rollout continues at the same stage.
func TestARolloutMayBeRenamed(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, nil)
	s.Released.All = "1.30"
	s.reportAll("1.30")
	s.expectValues(t, "1.31 1.30 1.30")
	s.Name = "k8s"
	s.has["canary"] = "1.31"
	s.expectValues(t, "1.31 1.31 1.31")
}

func TestANewClusterNeverGetsTheInitialValue(t *testing.T) {
	t.Parallel()
	s := newValuesSite(t, nil)
	s.Released.All = "1.20"
	s.Wanted = rollout.ByCluster{Each: map[string]string{"canary": "a", "region-a": "b", "region-b": "c"}}
	s.expectValues(t, "a 1.20 1.20")
	for range 3 {
		for cluster, value := range s.Wanted.Each {
			s.has[cluster], s.verdict[cluster] = value, verdict.Ready
		}
		s.run()
	}
	s.Wanted.Each["region-c"] = "d"
	s.addCluster("region-c")
	s.Settings.Windows = closedWindows(t)
	s.expectValues(t, "a b c d")
}
