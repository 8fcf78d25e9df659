package provider_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

type provenStep struct {
	version   any // version of the content
	candidate any
	further   map[string]any
	proven    any // value of proven in the plan
	writes    bool
}

// playProven applies steps to an assignment that has already written content "1".
func playProven(t *testing.T, steps ...provenStep) {
	t.Helper()
	r := newRings(t)
	for i, step := range steps {
		attributes := map[string]any{"candidate": step.candidate}
		maps.Copy(attributes, step.further)
		values := map[string]any{"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"VERSION": step.version}}}}
		before := git(t, r.url, "rev-parse", "dev")
		plan := apply(t, r.w, assigned(r.url, providertest.Call{Function: "fleet", Arguments: []any{ringFleet("", values)}}, attributes))
		if got := assignmentAfter(plan)["proven"]; !reflect.DeepEqual(got, step.proven) {
			t.Errorf("step %d: proven is %v in the plan, want %v", i, got, step.proven)
		}
		if wrote := git(t, r.url, "rev-parse", "dev") != before; wrote != step.writes {
			t.Errorf("step %d: writes is %v", i, wrote)
		}
	}
}

func TestACandidateIsProvenByThePlanAfterItsWrite(t *testing.T) {
	t.Parallel()
	playProven(t,
		provenStep{version: "1", candidate: "a", proven: "a"}, // the content was written before
		provenStep{version: "2", candidate: "b", proven: "a", writes: true},
		provenStep{version: "2", candidate: "b", proven: "b"},
		provenStep{version: "3", candidate: "c", proven: "b", writes: true},
		provenStep{version: "4", candidate: "d", proven: "b", writes: true},
		provenStep{version: "4", candidate: "e", proven: "e"}, // a new candidate with the same content
		provenStep{version: "5", candidate: "e", proven: "e", writes: true},
		provenStep{version: "5", candidate: map[string]any{"app": "1.0"}, proven: map[string]any{"app": "1.0"}},
		provenStep{version: "6", candidate: nil, proven: nil, writes: true},
		provenStep{version: "6", candidate: nil, proven: nil},
		provenStep{version: "7", candidate: "f", proven: nil, writes: true},
	)
}

func TestProvenIsKnownIfEveryOutcomeIsTheSame(t *testing.T) {
	t.Parallel()
	later := func(value any) providertest.Unknown { return providertest.Unknown{Then: value} }
	unknown := providertest.Unknown{}
	playProven(t,
		provenStep{version: "1", candidate: "a", proven: "a"},
		provenStep{version: later("1"), candidate: "a", proven: "a"},
		provenStep{version: later("1"), candidate: "b", proven: unknown},
		provenStep{version: "1", candidate: "b", proven: "b"},
		provenStep{version: later("2"), candidate: later("c"), proven: unknown, writes: true},
		provenStep{version: "2", candidate: later("c"), proven: unknown},
		provenStep{version: "3", candidate: later("d"), proven: "c", writes: true},
		provenStep{version: "3", candidate: later("d"), proven: unknown},
		provenStep{version: later("4"), candidate: nil, proven: nil, writes: true},
	)
}

func TestACreatedAssignmentHasProvenNothing(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	configuration := assigned(url, fleetOf(nil), map[string]any{"candidate": "a"})
	if plan := apply(t, w, configuration); assignmentAfter(plan)["proven"] != nil {
		t.Errorf("proven is %v in the first plan", assignmentAfter(plan)["proven"])
	}
	if plan := apply(t, w, configuration); assignmentAfter(plan)["proven"] != "a" {
		t.Errorf("proven is %v in the next plan", assignmentAfter(plan)["proven"])
	}
	if plan := apply(t, w, configuration); !plan.Empty() {
		t.Errorf("the third plan has %v", assignmentAfter(plan))
	}
}

func TestDriftProvesNothing(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	configuration := func(candidate string) providertest.Configuration {
		return assigned(url, fleetOf(nil), map[string]any{"candidate": candidate})
	}
	apply(t, w, configuration("a"))
	apply(t, w, configuration("a"))
	clone := t.TempDir()
	git(t, clone, "clone", "--quiet", "--branch", "dev", url, ".")
	git(t, clone, "rm", "--quiet", "-r", "clusters/all/large")
	git(t, clone, "commit", "--quiet", "--message", "By hand")
	git(t, clone, "push", "--quiet", "origin", "dev")
	if plan := apply(t, w, configuration("b")); assignmentAfter(plan)["proven"] != "a" {
		t.Errorf("before the repair, proven is %v", assignmentAfter(plan)["proven"])
	}
	if plan := apply(t, w, configuration("b")); assignmentAfter(plan)["proven"] != "b" {
		t.Errorf("after the repair, proven is %v", assignmentAfter(plan)["proven"])
	}
}

func TestWithEvidenceACandidateIsProvenWhenClustersAreReady(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]any{"without a rollout": nil, "with a rollout": {"stages": []any{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRings(t)
			r.rollout = settings
			step := func(version, candidate string, proven any) {
				t.Helper()
				r.further = map[string]any{"candidate": candidate}
				if plan := r.applyVersion(version, version+" "+version+" "+version); assignmentAfter(plan)["proven"] != proven {
					t.Errorf("proven is %v, want %v", assignmentAfter(plan)["proven"], proven)
				}
			}
			reportAll := func(state verdict.Verdict) {
				for _, cluster := range []string{"canary", "region", "rest"} {
					r.report(cluster, state)
				}
			}
			reportAll(verdict.Ready)
			step("1", "a", "a")
			step("2", "b", "a")
			step("2", "b", "a") // clusters report the former content
			reportAll(verdict.Progressing)
			step("2", "b", "a")
			r.report("canary", verdict.Ready)
			r.report("region", verdict.Ready)
			step("2", "b", "a")
			r.report("rest", verdict.Ready)
			r.now = r.now.Add(time.Hour)
			step("2", "b", "b")
			reportAll(verdict.Failed) // a proven candidate stays proven
			step("2", "b", "b")
		})
	}
}
