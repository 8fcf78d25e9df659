package provider_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// twoStates has two states with the same assignment at the same location, but with different values.
type twoStates struct {
	t          *testing.T
	url        string
	ours, hers *providertest.Workspace
}

func (s *twoStates) configuration(value string, further map[string]any) providertest.Configuration {
	return assigned(s.url, databaseFleet(value), further)
}

const otherState = "Another state has this assignment"

// expectHeld applies, and expects an error that names the commit of the other state, with no change of the branch.
func (s *twoStates) expectHeld(w *providertest.Workspace, configuration providertest.Configuration, texts ...string) {
	s.t.Helper()
	tip := git(s.t, s.url, "rev-parse", "dev")
	_, diags := w.Apply(s.t.Context(), configuration)
	if diags.Err() == nil || !diags.Has(otherState) {
		s.t.Fatalf("the apply does not name the other state: %s", diags)
	}
	for _, text := range append(texts, "by commit "+tip[:12]) {
		if !strings.Contains(diags.String(), text) {
			s.t.Errorf("the apply does not say %q: %s", text, diags)
		}
	}
	if git(s.t, s.url, "rev-parse", "dev") != tip {
		s.t.Error("the apply changes the branch")
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
		t.Errorf("the commit names the run %q", message)
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

	// A new state names the owner of the folders and takes them over.
	_, diags = s.hers.Apply(t.Context(), s.configuration("mysql://hers", source))
	for _, want := range []string{"Folders are there already", "written last by commit " + tip[:12], run} {
		if diags.Err() != nil || !strings.Contains(diags.String(), want) {
			t.Errorf("the second state does not say %q: %s", want, diags)
		}
	}
	if plan, diags := mustPlan(t, s.hers, s.configuration("mysql://hers", source)); !plan.Empty() || len(diags) > 0 {
		t.Errorf("the next plan of the second state is not empty: %s", diags)
	}

	// The first state undoes nothing, even if its configuration did not change.
	s.expectHeld(
		s.ours,
		s.configuration("mysql://ours", nil),
		run,
		"configuration https://git.example.com/acme/fleet@a1a1a1a1a1a1",
		"set adopt = true",
	)
	s.expectHeld(s.ours, s.configuration("mysql://newer", nil), run)

	// With adopt, the first state takes the assignment back, and the second state is held.
	_, diags = s.ours.Apply(t.Context(), s.configuration("mysql://ours", withAdopt))
	if diags.Err() != nil || !diags.Has("Assignment is taken over from another state") {
		t.Errorf("the apply with adopt reports %s", diags)
	}
	if plan, diags := mustPlan(t, s.ours, s.configuration("mysql://ours", nil)); plan.Change(assignment).Action != providertest.Update ||
		len(diags) > 0 {
		t.Errorf("the plan without adopt reports %s", diags)
	}
	apply(t, s.ours, s.configuration("mysql://ours", nil))
	s.expectHeld(s.hers, s.configuration("mysql://hers", source), run)

	// The second state destroys its assignment and removes nothing of the first.
	if _, diags := s.hers.Apply(t.Context(), providertest.Configuration{}); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan, _ := mustPlan(t, s.ours, s.configuration("mysql://ours", nil)); !plan.Empty() {
		t.Error("the destroy of the second state removes something")
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
			apply(t, s.hers, s.configuration("mysql://ours", nil)) // changes only the records
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
		t.Errorf("the first plan after an import reports %s", diags)
	}
	tip := git(t, s.url, "rev-parse", "dev")
	_, diags := s.hers.Apply(t.Context(), s.configuration("mysql://hers", nil))
	if diags.Err() != nil || !diags.Has("Assignment is taken over from another state") || !strings.Contains(diags.String(), "commit "+tip[:12]) {
		t.Errorf("the first write after an import reports %s", diags)
	}
	if _, diags := s.hers.Apply(t.Context(), s.configuration("mysql://other", nil)); diags.Err() != nil || len(diags) > 0 {
		t.Errorf("the second write after an import reports %s", diags)
	}
	s.expectHeld(s.ours, s.configuration("mysql://ours", nil))
}

func TestStateKeepsItsAssignmentThroughItsChanges(t *testing.T) {
	t.Parallel()
	plain := func(s *twoStates, value string) providertest.Configuration { return s.configuration(value, nil) }
	for name, change := range map[string]func(s *twoStates){
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
			location := map[string]any{"gitops_repo": map[string]any{"url": s.url, "branch": "dev", "path": "elsewhere"}}
			apply(s.t, s.ours, s.configuration("mysql://ours", location))
		},
		"a holder changed by hand": func(s *twoStates) {
			repository{url: s.url, cloneURL: s.url}.change(s.t, "dev", func(folder string) {
				writeFile(s.t, filepath.Join(folder, "clusters/all/.flotilla/dev/large.json"), `{"format": 1, "holder": "me", "deployment_targets": {}}`)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "lost", "replaced", "renamed", "a holder changed by hand")
			t.Parallel()
			s := newTwoStates(t)
			change(s)
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
					t.Errorf("the next apply reports %s", diags)
				}
			}
		})
	}
}
