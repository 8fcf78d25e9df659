package provider_test

// Tests assert every promise of the guide on assignments. The tests in this file assert the promises that no other file does:
//
//   - Plans: here; changes_test.go (lines and causes), upgraded_test.go (an upgrade, ten new cluster types, keys inside an object),
//     plan_size_test.go (500 hosts, a refresh-only plan), saved_plan_test.go and saved_destroy_test.go (pushes between plan and
//     apply), assignment_test.go (drift).
//   - Renames, other spellings, and moves: here; identity_test.go (names, spellings, branches, moves, replacements),
//     handover_test.go (two assignments in one apply, holders), replaced_test.go (tainted and deposed), on_destroy_test.go (keep).
//   - A renamed cluster type: renamed_test.go, and e2e/renamed_test.go (with agents).
//   - Hosts that leave: here; assignment_test.go (a destroy).
//   - The inventory: here; data_source_inventory_test.go.
//   - Rollbacks: here; rollback_test.go (drift, waiting changes, commits, protection, requests).
//   - Handovers: here; adopt_test.go, handover_test.go, bad_input_test.go, and gitops/ownership_test.go (nested folders).
//   - Release: here; on_destroy_test.go.
//   - Mass deletions: here; mass_deletion_test.go, identity_test.go (a host that would lose everything, destroys), and
//     delivery/delivery_test.go (a destroy when it runs, folders that others wrote since).
//   - Imports: here; assignment_import_test.go.
//   - Timeouts: timeouts_test.go.
//
// TestTheGuideOnAssignmentsShowsHCLThatApplies applies the HCL of the guide.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const assignmentsGuide = "assignments.md"

// applyThenPlan applies one fleet and plans another.
func applyThenPlan(t *testing.T, before, after any) (*providertest.Plan, providertest.Diagnostics) {
	t.Helper()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, before, nil))
	return mustPlan(t, w, assigned(url, after, nil))
}

func mustPlan(
	t *testing.T,
	w *providertest.Workspace,
	configuration providertest.Configuration,
	options ...providertest.Option,
) (*providertest.Plan, providertest.Diagnostics) {
	t.Helper()
	plan, diags := w.Plan(t.Context(), configuration, options...)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	return plan, diags
}

// databaseFleet sets a value for the host large.
func databaseFleet(url string) providertest.Call {
	return fleetOf(map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
		map[string]any{"name": "large", "labels": map[string]any{"cluster-type": "large"}, "data": map[string]any{"DATABASE_URL": url}},
	}})
}

// coreFleet is databaseFleet without the assignment drone/app-edge.
func coreFleet(url string) providertest.Call {
	fleet := databaseFleet(url)
	argument, _ := fleet.Arguments[0].(map[string]any)
	policies, _ := argument["target_policies"].([]any)
	argument["target_policies"] = policies[1:]
	return fleet
}

func TestTheGuideOnAssignmentsShowsTheLinesOfAPlan(t *testing.T) {
	t.Parallel()
	_, listing, _ := strings.Cut(guideText(t, assignmentsGuide), "~ changes = [\n")
	listing, _, _ = strings.Cut(listing, "\n  ]")
	var want []string
	for _, line := range strings.Split(listing, "\n") {
		line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), `+ "`), `",`)
		want = append(want, strings.ReplaceAll(line, `\"`, `"`))
	}
	east := func(url string) providertest.Call {
		targets := map[string]any{}
		for i := range 7 {
			targets[fmt.Sprint("t", i)] = map[string]any{
				"environment": "dev",
				"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
			}
		}
		return fleetOf(map[string]any{
			"cluster_types":     []any{map[string]any{"name": "large"}, map[string]any{"name": "small"}},
			"workloads":         []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": targets}},
			"target_policies":   []any{policy("all", map[string]any{}, map[string]any{})},
			"config_containers": []any{map[string]any{"name": "east", "data": map[string]any{"DATABASE_URL": url}}},
		})
	}
	plan, _ := applyThenPlan(t, east("mysql://one"), east("mysql://two"))
	if lines := linesOf(plan); !slices.Equal(lines, want) {
		t.Errorf("the guide shows\n%s\nand the plan says\n%s", strings.Join(want, "\n"), strings.Join(lines, "\n"))
	}
}

func TestTheGuideOnAssignmentsIsRightAboutThePlan(t *testing.T) {
	t.Parallel()
	t.Run("removals come first, and no value is shown", func(t *testing.T) {
		t.Parallel()
		plan, diags := applyThenPlan(t, databaseFleet("mysql://one"), coreFleet("mysql://two"))
		lines := linesOf(plan)
		if len(lines) != 3 || !strings.HasPrefix(lines[1], "- drone/app-edge") || !strings.Contains(lines[2], "data.DATABASE_URL") {
			t.Errorf("the plan says\n%s", strings.Join(lines, "\n"))
		}
		if all := strings.Join(lines, "\n") + diags.String(); strings.Contains(all, "mysql") {
			t.Errorf("a value is shown: %s", all)
		}
	})
	t.Run("the first commit by hand is named", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, fleetOf(nil), nil))
		var commits []string
		for _, text := range []string{"kind: One\n", "kind: Two\n"} {
			repository{url: url, cloneURL: url}.change(t, "dev", func(folder string) {
				writeFile(t, filepath.Join(folder, "clusters/all/large/app-core/namespace.yaml"), text)
			})
			commits = append(commits, git(t, url, "rev-parse", "dev"))
		}
		plan, _ := mustPlan(t, w, assigned(url, fleetOf(nil), nil))
		message := strings.Join(linesOf(plan), "\n")
		if !strings.Contains(message, "by hand, since commit "+commits[0][:7]) || strings.Contains(message, commits[1][:7]) {
			t.Errorf("for the commits %q, the plan says\n%s", commits, message)
		}
		if plan, _ := mustPlan(t, w, assigned(url, fleetOf(nil), nil), providertest.RefreshOnly()); plan.ExitCode != 2 {
			t.Error("a refresh-only plan does not find the change by hand")
		}
	})
	t.Run("the fleet is in no state and causes no change by itself", func(t *testing.T) {
		t.Parallel()
		nowhere := fleetOf(map[string]any{"config_containers": []any{
			map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
			map[string]any{
				"name":   "large",
				"labels": map[string]any{"cluster-type": "large"},
				"data":   map[string]any{"DATABASE_URL": "mysql://one"},
			},
			map[string]any{"name": "nowhere", "labels": map[string]any{"region": "moon"}, "data": map[string]any{"A": "b"}},
		}})
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, fleetOf(nil), nil))
		if plan, diags := mustPlan(t, w, assigned(url, nowhere, nil)); !plan.Empty() {
			t.Errorf("the plan says %v %s", linesOf(plan), diags)
		}
		if fleet := w.State.Values(assignment)["fleet"]; fleet != nil {
			t.Errorf("the state has the fleet %v", fleet)
		}
	})
	t.Run("applied changes are in the state, but in no later plan", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, fleetOf(nil), nil))
		changed := linesOf(apply(t, w, assigned(url, databaseFleet("mysql://two"), nil)))
		if state := fmt.Sprint(w.State.Values(assignment)["changes"]); len(changed) != 2 || state != fmt.Sprint(changed) {
			t.Errorf("the apply changed %q, and the state has %s", changed, state)
		}
		if plan, diags := mustPlan(t, w, assigned(url, databaseFleet("mysql://two"), nil), providertest.RefreshOnly()); plan.ExitCode != 0 {
			t.Errorf("a refresh-only plan finds %v %s", plan.Drifted, diags)
		}
		plan, _ := mustPlan(t, w, assigned(url, coreFleet("mysql://two"), nil))
		if lines := linesOf(plan); len(lines) != 2 || strings.Contains(strings.Join(lines, "\n"), "DATABASE_URL") {
			t.Errorf("the next plan says %q", lines)
		}
	})
	t.Run("a new assignment lists its folders and warns of existing ones", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, fleetOf(nil), nil))
		w.Lose(assignment)
		plan, diags := mustPlan(t, w, assigned(url, coreFleet("mysql://two"), map[string]any{"adopt": true}))
		if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, "2 added, 0 removed") {
			t.Errorf("the plan says %s", lines)
		}
		if !diags.Has("Folders are there already") || !strings.Contains(diags.String(), "drone/app-edge") {
			t.Errorf("got diagnostics %s", diags)
		}
	})
	t.Run("unknown values are a warning", func(t *testing.T) {
		t.Parallel()
		waits := fleetOf(map[string]any{"config_containers": []any{
			map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "debug"}},
			map[string]any{
				"name":   "large",
				"labels": map[string]any{"cluster-type": "large"},
				"data":   map[string]any{"DATABASE_URL": providertest.Unknown{}},
			},
		}})
		plan, diags := applyThenPlan(t, fleetOf(nil), waits)
		if changes := plan.Change(assignment).After["changes"]; changes != (providertest.Unknown{}) {
			t.Errorf("changes are %v", changes)
		}
		for _, want := range []string{"Warning: ", "data.LOG_LEVEL, on drone", "1 not known yet", lineText(changes.Line{Kind: changes.WaitLine, Assignments: assignmentKeys("large/app-core"), Names: []string{`config container "large"`}})} {
			if !strings.Contains(diags.String(), want) {
				t.Errorf("no %q in %s", want, diags)
			}
		}
	})
}

func TestTheGuideOnAssignmentsIsRightAboutMoves(t *testing.T) {
	t.Parallel()
	t.Run("a moved block", func(t *testing.T) {
		t.Parallel()
		url, w := bare(t), providertest.New(startProvider)
		configuration := assigned(url, fleetOf(nil), nil)
		apply(t, w, configuration)
		renamed := providertest.Configuration{
			Resources: map[string]providertest.Resource{"flotilla_assignment.next": configuration.Resources[assignment]},
		}
		before := git(t, url, "rev-parse", "dev")
		apply(t, w, renamed, providertest.MovedBlock(assignment, "flotilla_assignment.next"))
		if git(t, url, "rev-parse", "dev") != before {
			t.Error("an address that is renamed with moved made a commit")
		}
	})
	t.Run("a deleted former repository", func(t *testing.T) {
		t.Parallel()
		url, next, w := bare(t), bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, fleetOf(nil), nil))
		if err := os.RemoveAll(url); err != nil {
			t.Fatal(err)
		}
		_, diags := mustPlan(t, w, assigned(next, fleetOf(nil), nil))
		if len(diags) == 0 || !strings.Contains(diags.String(), url) {
			t.Errorf("no warning: %s", diags)
		}
		apply(t, w, assigned(next, fleetOf(nil), nil))
		git(t, next, "cat-file", "-e", "dev:clusters/all/large/app-core")
	})
	t.Run("nested folders of two assignments", func(t *testing.T) {
		t.Parallel()
		for theirs, ours := range map[string]string{"clusters/all": "clusters/all/large/app-core", "clusters/all/large/app-core": "clusters/all"} {
			url := bare(t)
			attributesAt := func(path string) map[string]any {
				return map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": path}}
			}
			apply(t, providertest.New(startProvider), assigned(url, fleetOf(nil), attributesAt(theirs)))
			before, further := git(t, url, "rev-parse", "dev"), attributesAt(ours)
			further["name"], further["adopt"] = "other", true
			_, diags := providertest.New(startProvider).Apply(t.Context(), assigned(url, fleetOf(nil), further))
			if !diags.Has("Folder does not belong to this assignment") || git(t, url, "rev-parse", "dev") != before {
				t.Errorf("at %s got diagnostics %s", ours, diags)
			}
		}
	})
}

func TestTheGuideOnAssignmentsIsRightAboutTakingOver(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetOf(nil), nil))
	before := git(t, url, "rev-parse", "dev")
	apply(t, providertest.New(startProvider), assigned(url, fleetOf(nil), map[string]any{"name": "other", "adopt": true}))
	if git(t, url, "rev-parse", "dev^") != before {
		t.Error("folders were not taken over in one commit")
	}
	for record, wantRecord := range map[string]bool{"dev": false, "other": true} {
		if got := git(t, url, "grep", "-l", "app-core", "dev", "--", "clusters/all/.flotilla"); strings.Contains(
			got,
			".flotilla/"+record+"/",
		) != wantRecord {
			t.Errorf("the records of %s: %s", record, got)
		}
	}
}

func TestTheGuideOnAssignmentsIsRightAboutEmptiedHosts(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.config.shape.targets[1] = 0
	o.requireRefusal(t, "A host would lose everything")
	for host, refused := range map[string]bool{"t0": true, "t1": false} {
		configuration := o.configuration(o.person)
		configuration.Resources[addresses[0]].Attributes["protection"] = map[string]any{"emptied_hosts": []any{host}}
		if _, diags := o.runner.Plan(t.Context(), configuration); diags.Has("A host would lose everything") != refused {
			t.Errorf("with %s, the plan says %s", host, diags)
		}
	}
}

func TestTheGuideOnAssignmentsIsRightAboutLeavingHosts(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	remaining := fleetOf(map[string]any{"cluster_types": []any{
		map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"}},
		map[string]any{"name": "spare"},
	}})
	apply(t, w, assigned(url, remaining, nil))
	if folder := git(t, url, "ls-tree", "-r", "--name-only", "dev", "clusters/all/large/"); folder != "clusters/all/large/dev.md" {
		t.Errorf("the host has the files %s", folder)
	}
	if marker := git(t, url, "show", "dev:clusters/all/large/dev.md"); !isVacated(marker) {
		t.Errorf("got %s", marker)
	}
	// The file has no owner: its removal changes no assignment.
	for range 2 {
		if plan, diags := mustPlan(t, w, assigned(url, remaining, nil)); !plan.Empty() {
			t.Errorf("the plan says %v %s", linesOf(plan), diags)
		}
		if git(t, url, "ls-tree", "-r", "--name-only", "dev", "clusters/all/large/") != "" {
			repository{
				url:      url,
				cloneURL: url,
			}.change(
				t,
				"dev",
				func(folder string) { removeFile(t, filepath.Join(folder, "clusters/all/large/dev.md")) },
			)
		}
	}
}

func TestTheGuideOnAssignmentsIsRightAboutTheInventory(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	written := git(t, url, "rev-parse", "dev")
	attributes := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}, "workload": "app"}
	read := func() string { // as another configuration
		values, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_inventory", attributes)
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		return fmt.Sprint(values["assignments"])
	}
	before := read()
	for _, want := range []string{"host:large", "deployment_target:app-core", "changed:", written} {
		if !strings.Contains(before, want) {
			t.Errorf("no %q in %s", want, before)
		}
	}
	repository{url: url, cloneURL: url}.change(t, "dev", func(folder string) {
		writeFile(t, filepath.Join(folder, "clusters/all/large/app-core/namespace.yaml"), "kind: Hand\n")
	})
	if after := read(); after != before {
		t.Errorf("after a change by hand the inventory is %s", after)
	}
}

func TestTheGuideOnAssignmentsIsRightAboutRollbacks(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	first := git(t, url, "rev-parse", "dev")
	apply(t, w, assigned(url, databaseFleet("mysql://two"), nil))
	history, diags := w.ReadData(
		t.Context(),
		providertest.Configuration{},
		"flotilla_history",
		map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}, "name": "dev"},
	)
	if diags.Err() != nil || !strings.Contains(fmt.Sprint(history), first) {
		t.Errorf("flotilla_history has %v %s", history, diags)
	}
	back := assigned(url, databaseFleet("mysql://two"), map[string]any{"rollback_to": first})
	plan, diags := mustPlan(t, w, back)
	if !diags.Has("Assignment is rolled back") ||
		!strings.Contains(strings.Join(linesOf(plan), "\n"), "data.DATABASE_URL, on large: app-core") {
		t.Errorf("the plan says %q %s", linesOf(plan), diags)
	}
	apply(t, w, back)
	if changed := git(t, url, "diff", "--stat", first, "dev", "--", "clusters/all/large/app-core"); changed != "" {
		t.Errorf("the folder differs from its former content: %s", changed)
	}
}

// TestTheGuideOnAssignmentsShowsHCLThatApplies applies both HCL blocks of the guide to a repository of its own.
func TestTheGuideOnAssignmentsShowsHCLThatApplies(t *testing.T) {
	t.Parallel()
	inventory, rollback := guideBlock(t, assignmentsGuide, `data "flotilla_inventory"`), guideBlock(t, assignmentsGuide, "rollback_to")
	match := regexp.MustCompile(`(?m)^  rollback_to = "([0-9a-f]{40})"\n`).FindStringSubmatch(rollback)
	if match == nil || !strings.Contains(rollback, "  # …\n") {
		t.Fatalf("the guide has %s", rollback)
	}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bare(t)
			rollback := strings.Replace(
				rollback,
				"  # …\n",
				fmt.Sprintf("  name        = \"prod\"\n  fleet       = local.fleet\n  gitops_repo = { url = %q, branch = \"prod\" }\n", url),
				1,
			)
			w := newWorkdir(t, tool, map[string]string{
				"main.tf": requiredProviders + strings.ReplaceAll(inventory, "https://git.example.com/platform/gitops", url),
			})
			run := func(tag, assignment string) *tfjson.Plan {
				t.Helper()
				writeFile(t, filepath.Join(w.path, "assignment.tf"), fmt.Sprintf(`
locals {
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "large" }]
    workloads = [for name in ["payments", "reports"] : {
      name = name, workspace = "team"
      deployment_targets = { live = { environment = "prod", manifests = { repo = "https://git.example.com/${name}", tag = %q } } }
    }]
    target_policies = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}
`, tag)+assignment)
				plan := w.plan()
				w.run("apply", "-input=false", "plan.out")
				return plan
			}
			ahead := strings.Replace(rollback, match[0], "", 1)
			run("v1", ahead)
			first := git(t, url, "rev-parse", "prod")
			run("v2", ahead) // the inventory still reads the first commit
			if where := w.run("output", "-json", "where_payments_runs"); !strings.Contains(where, `"large/payments-live":"20`) ||
				strings.Contains(where, "reports") {
				t.Errorf("payments runs at %s", where)
			}
			plan := run("v2", strings.Replace(rollback, match[1], first, 1))
			if lines := fieldText(resourceChange(t, plan, "flotilla_assignment.dev").After, "changes"); !strings.Contains(
				lines,
				causeText(causeBy(changes.ByRollback, first[:8])),
			) {
				t.Errorf("the plan says %s", lines)
			}
			if changed := git(t, url, "diff", "--stat", first, "prod", "--", "large"); changed != "" {
				t.Errorf("the folder differs from its former content: %s", changed)
			}
		})
	}
}

func TestTheGuideOnAssignmentsIsRightAboutRelease(t *testing.T) {
	t.Parallel()
	keeps := map[string]any{"on_destroy": "keep", "protection": map[string]any{"max_removed": 100, "allow_empty": true}}
	free := map[string]any{"protection": keeps["protection"]}
	for _, applied := range []bool{true, false} {
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, fleetOf(nil), map[bool]map[string]any{true: keeps, false: free}[applied]))
		apply(t, w, assigned(url, fleetOf(nil), keeps), providertest.Destroy()) // a destroy ignores arguments that were never applied
		names := git(t, url, "ls-tree", "-r", "--name-only", "dev")
		if strings.Contains(names, "large/app-core") != applied || strings.Contains(names, ".flotilla/dev/") {
			t.Errorf("applied before: %v; remaining files:\n%s", applied, names)
		}
		if !applied {
			continue
		}
		// Any assignment may adopt the folders.
		tree := git(t, url, "rev-parse", "dev:clusters/all/large/app-core")
		apply(t, w, assigned(url, fleetOf(nil), map[string]any{"name": "other", "adopt": true}))
		if record := git(t, url, "show", "dev:clusters/all/.flotilla/other/large.json"); !strings.Contains(record, "app-core") {
			t.Errorf("for tree %s, the record has %s", tree, record)
		}
	}
}

func TestTheGuideOnAssignmentsIsRightAboutImporting(t *testing.T) {
	t.Parallel()
	url := bare(t)
	further := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters"}}
	apply(t, providertest.New(startProvider), assigned(url, fleetOf(nil), further))
	w := providertest.New(startProvider)
	command := regexp.MustCompile(`(?m)^terraform import flotilla_assignment.dev '(.*)'$`).FindStringSubmatch(guideText(t, assignmentsGuide))
	if command == nil {
		t.Fatal("the guide has no command that imports")
	}
	id := strings.ReplaceAll(command[1], "https://git.example.com/platform/gitops.git", url)
	if diags := w.Import(t.Context(), assigned(url, fleetOf(nil), further), assignment, id); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan, diags := mustPlan(t, w, assigned(url, fleetOf(nil), further)); !plan.Empty() {
		t.Errorf("the first plan says %v %s", linesOf(plan), diags)
	}
	for _, step := range []struct {
		value  string
		causes []changes.Cause
	}{{"mysql://two", nil}, {"mysql://three", []changes.Cause{causeBy(changes.ByContainer, "large")}}} {
		lines := linesOf(apply(t, w, assigned(url, databaseFleet(step.value), further)))
		if len(lines) != 2 || lines[1] != fileLine("platform-config.yaml", "data.DATABASE_URL", "large/app-core", step.causes...) {
			t.Errorf("the plan of %s says %q", step.value, lines)
		}
	}
}
