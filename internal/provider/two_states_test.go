package provider_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// twoStates are two states whose configurations have an assignment of one name at one location, each with its own value.
type twoStates struct {
	t          *testing.T
	url        string
	ours, hers *providertest.Workspace
}

func (s *twoStates) configuration(value string, further map[string]any) providertest.Configuration {
	return assigned(s.url, databaseFleet(value), further)
}

const otherState = "Another state has this assignment"

// expectHeld expects a plan that the other state holds, and that names a commit, and nothing that is written.
func (s *twoStates) expectHeld(w *providertest.Workspace, configuration providertest.Configuration, says ...string) {
	s.t.Helper()
	tip := git(s.t, s.url, "rev-parse", "dev")
	_, diags := w.Apply(s.t.Context(), configuration)
	if diags.Err() == nil || !diags.Has(otherState) {
		s.t.Fatalf("the plan is not held: %s", diags)
	}
	for _, one := range append(says, "by commit "+tip[:12]) {
		if !strings.Contains(diags.String(), one) {
			s.t.Errorf("the plan does not say %q: %s", one, diags)
		}
	}
	if git(s.t, s.url, "rev-parse", "dev") != tip {
		s.t.Error("something was written")
	}
}

func newTwoStates(t *testing.T) *twoStates {
	t.Helper()
	s := &twoStates{t: t, url: bare(t), ours: providertest.New(startProvider), hers: providertest.New(startProvider)}
	apply(t, s.ours, s.configuration("mysql://ours", nil))
	return s
}

var withAdopt = map[string]any{"adopt": true}

func TestTwoStatesOfOneNameDoNotUndoEachOther(t *testing.T) { // sets variables of the environment
	for name, value := range map[string]string{
		"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/fleet", "GITHUB_RUN_ID": "17",
	} {
		t.Setenv(name, value)
	}
	s := newTwoStates(t)
	const run = "run https://github.com/acme/fleet/actions/runs/17"
	source := map[string]any{"source": map[string]any{"url": "https://git.example.com/acme/fleet", "commit": strings.Repeat("a1", 20)}}
	tip := git(t, s.url, "rev-parse", "dev")
	if message := git(t, s.url, "log", "-1", "--format=%(trailers:key=Flotilla-Run,valueonly)", "dev"); message != "https://github.com/acme/fleet/actions/runs/17" {
		t.Errorf("the commit says that its run is %q", message)
	}

	history, diags := s.ours.ReadData(t.Context(), providertest.Configuration{}, "flotilla_history", map[string]any{
		"gitops_repo": map[string]any{"url": s.url, "branch": "dev", "path": "clusters/all"},
	})
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	if commits, _ := history["commits"].([]any); len(commits) != 1 || field(commits[0], "run") != strings.TrimPrefix(run, "run ") {
		t.Errorf("flotilla_history has %v", history["commits"])
	}

	// A state that is new there says whose the folders are, and takes them over.
	_, diags = s.hers.Apply(t.Context(), s.configuration("mysql://hers", source))
	for _, want := range []string{"Folders are there already", "written last by commit " + tip[:12], run} {
		if diags.Err() != nil || !strings.Contains(diags.String(), want) {
			t.Errorf("the second state does not say %q: %s", want, diags)
		}
	}
	if plan, diags := mustPlan(t, s.hers, s.configuration("mysql://hers", source)); !plan.Empty() || len(diags) > 0 {
		t.Errorf("the second state plans again: %s", diags)
	}

	// The first one undoes nothing, also in a plan without a change of its own.
	s.expectHeld(
		s.ours,
		s.configuration("mysql://ours", nil),
		run,
		"configuration https://git.example.com/acme/fleet@a1a1a1a1a1a1",
		"set adopt = true",
	)
	s.expectHeld(s.ours, s.configuration("mysql://newer", nil), run)

	// It takes the assignment back where that is said, and then the other one is held.
	_, diags = s.ours.Apply(t.Context(), s.configuration("mysql://ours", withAdopt))
	if diags.Err() != nil || !diags.Has("Assignment is taken over from another state") {
		t.Errorf("adopt: %s", diags)
	}
	if plan, diags := mustPlan(t, s.ours, s.configuration("mysql://ours", nil)); plan.Change(assignment).Action != providertest.Update ||
		len(diags) > 0 {
		t.Errorf("without adopt again: %s", diags)
	}
	apply(t, s.ours, s.configuration("mysql://ours", nil))
	s.expectHeld(s.hers, s.configuration("mysql://hers", source), run)

	// A state that does not want it any more removes nothing of the other one's.
	if _, diags := s.hers.Apply(t.Context(), providertest.Configuration{}); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan, _ := mustPlan(t, s.ours, s.configuration("mysql://ours", nil)); !plan.Empty() {
		t.Error("the destroy of the other state has removed something")
	}
}

func TestTakeoverBetweenPlanAndApplyStopsTheApply(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]providertest.Option{"a saved plan": nil, "without a refresh": {providertest.SkipRefresh()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTwoStates(t)
			var plan *providertest.Plan
			if options == nil {
				plan, _ = mustPlan(t, s.ours, s.configuration("mysql://newer", nil))
			}
			apply(t, s.hers, s.configuration("mysql://ours", nil)) // the same folders: only the records change
			tip := git(t, s.url, "rev-parse", "dev")
			if options != nil {
				plan, _ = mustPlan(t, s.ours, s.configuration("mysql://newer", nil), options...)
			}
			if diags := s.ours.ApplyPlan(t.Context(), plan); !diags.Has(otherState) || git(t, s.url, "rev-parse", "dev") != tip {
				t.Errorf("the apply says %s", diags)
			}
		})
	}
}

func TestAnImportTakesAnAssignmentOverWithItsFirstWrite(t *testing.T) {
	t.Parallel()
	s := newTwoStates(t)
	if diags := s.hers.Import(t.Context(), s.configuration("mysql://ours", nil), assignment, s.url+"#dev:clusters/all:dev"); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan, diags := mustPlan(t, s.hers, s.configuration("mysql://ours", nil)); !plan.Empty() || len(diags) > 0 {
		t.Errorf("the first plan after an import: %s", diags)
	}
	tip := git(t, s.url, "rev-parse", "dev")
	_, diags := s.hers.Apply(t.Context(), s.configuration("mysql://hers", nil))
	if diags.Err() != nil || !diags.Has("Assignment is taken over from another state") || !strings.Contains(diags.String(), "commit "+tip[:12]) {
		t.Errorf("the first write after an import: %s", diags)
	}
	if _, diags := s.hers.Apply(t.Context(), s.configuration("mysql://other", nil)); diags.Err() != nil || len(diags) > 0 {
		t.Errorf("the second one: %s", diags)
	}
	s.expectHeld(s.ours, s.configuration("mysql://ours", nil))
}

func TestStateKeepsItsAssignmentThroughItsChanges(t *testing.T) {
	t.Parallel()
	plain := func(s *twoStates, value string) providertest.Configuration { return s.configuration(value, nil) }
	for name, becomes := range map[string]func(s *twoStates){
		"lost": func(s *twoStates) {
			s.ours.Lose(assignment)
			apply(s.t, s.ours, plain(s, "mysql://ours"))
		},
		"replaced": func(s *twoStates) {
			_, diags := s.ours.Apply(s.t.Context(), plain(s, "mysql://ours"), providertest.Replace(assignment))
			if diags.Err() != nil || diags.Has("Folders are there already") {
				s.t.Error(diags)
			}
		},
		"tainted": func(s *twoStates) {
			s.ours.Taint(assignment)
			apply(s.t, s.ours, plain(s, "mysql://ours"))
		},
		"renamed": func(s *twoStates) {
			apply(s.t, s.ours, s.configuration("mysql://ours", map[string]any{"name": "other"}))
		},
		"moved": func(s *twoStates) {
			at := map[string]any{"gitops_repo": map[string]any{"url": s.url, "branch": "dev", "path": "elsewhere"}}
			apply(s.t, s.ours, s.configuration("mysql://ours", at))
		},
		"of a holder that a person has changed": func(s *twoStates) {
			repository{url: s.url, cloneURL: s.url}.change(s.t, "dev", func(folder string) {
				writeFile(s.t, filepath.Join(folder, "clusters/all/.flotilla/dev/large.json"), `{"format": 1, "holder": "me", "deployment_targets": {}}`)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "lost", "replaced", "renamed", "of a holder that a person has changed")
			t.Parallel()
			s := newTwoStates(t)
			becomes(s)
			further := map[string]any{}
			switch name {
			case "renamed":
				further["name"] = "other"
			case "moved":
				further["gitops_repo"] = map[string]any{"url": s.url, "branch": "dev", "path": "elsewhere"}
			}
			for _, value := range []string{"mysql://ours", "mysql://newer"} {
				if _, diags := s.ours.Apply(t.Context(), s.configuration(value, maps.Clone(further))); diags.Err() != nil || diags.Has(otherState) ||
					diags.Has("Folders are there already") {
					t.Errorf("the next apply: %s", diags)
				}
			}
		})
	}
}
