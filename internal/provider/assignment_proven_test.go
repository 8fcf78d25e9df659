package provider_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// provenStep is a plan of an assignment, and the apply of it.
type provenStep struct {
	version   any // of the content
	candidate any
	further   map[string]any
	proven    any // what the plan says that proven is
	writes    bool
}

// playProven applies steps to an assignment whose content "1" is written already.
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
			t.Errorf("step %d: the plan says that %v is proven, not %v", i, got, step.proven)
		}
		if wrote := git(t, r.url, "rev-parse", "dev") != before; wrote != step.writes {
			t.Errorf("step %d: it writes: %v", i, wrote)
		}
	}
}

func TestACandidateIsProvenInThePlanAfterTheOneThatWritesIt(t *testing.T) {
	t.Parallel()
	playProven(t,
		provenStep{version: "1", candidate: "a", proven: "a"}, // its content was there before
		provenStep{version: "2", candidate: "b", proven: "a", writes: true},
		provenStep{version: "2", candidate: "b", proven: "b"},
		provenStep{version: "3", candidate: "c", proven: "b", writes: true},
		provenStep{version: "4", candidate: "d", proven: "b", writes: true},
		provenStep{version: "4", candidate: "e", proven: "e"}, // nothing is to be written for it
		provenStep{version: "5", candidate: "e", proven: "e", writes: true},
		provenStep{version: "5", candidate: map[string]any{"app": "1.0"}, proven: map[string]any{"app": "1.0"}},
		provenStep{version: "6", candidate: nil, proven: nil, writes: true},
		provenStep{version: "6", candidate: nil, proven: nil},
		provenStep{version: "7", candidate: "f", proven: nil, writes: true},
	)
}

func TestWhatIsProvenIsKnownWhereEveryOutcomeIsTheSame(t *testing.T) {
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
		t.Errorf("the plan that creates says that %v is proven", assignmentAfter(plan)["proven"])
	}
	if plan := apply(t, w, configuration); assignmentAfter(plan)["proven"] != "a" {
		t.Errorf("the next plan says that %v is proven", assignmentAfter(plan)["proven"])
	}
	if plan := apply(t, w, configuration); !plan.Empty() {
		t.Errorf("after it %v", assignmentAfter(plan))
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
		t.Errorf("while a folder has to be repaired, %v is proven", assignmentAfter(plan)["proven"])
	}
	if plan := apply(t, w, configuration("b")); assignmentAfter(plan)["proven"] != "b" {
		t.Errorf("then %v is proven", assignmentAfter(plan)["proven"])
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
					t.Errorf("%v is proven, not %v", assignmentAfter(plan)["proven"], proven)
				}
			}
			all := func(is verdict.Verdict) {
				for _, cluster := range []string{"canary", "region", "rest"} {
					r.report(cluster, is)
				}
			}
			all(verdict.Ready)
			step("1", "a", "a")
			step("2", "b", "a")
			step("2", "b", "a") // clusters still have the content before
			all(verdict.Progressing)
			step("2", "b", "a")
			r.report("canary", verdict.Ready)
			r.report("region", verdict.Ready)
			step("2", "b", "a")
			r.report("rest", verdict.Ready)
			r.now = r.now.Add(time.Hour)
			step("2", "b", "b")
			all(verdict.Failed) // takes nothing back
			step("2", "b", "b")
		})
	}
}
