package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// ownedAssignment is a person with one assignment of 15 folders.
type ownedAssignment struct {
	*sequence
	*person
	config *assignmentConfig
}

// newOwnedAssignment creates the assignment on a Git host in memory.
func newOwnedAssignment(t *testing.T) ownedAssignment {
	t.Helper()
	world := newMemoryWorld(t, true)
	return newOwnedAssignmentIn(t, world, providertest.New(world.start), providertest.New(world.start))
}

func newOwnedAssignmentIn(t *testing.T, world world, runners ...providertest.Runner) ownedAssignment {
	t.Helper()
	s := newSequence(t, 0, world, runners...)
	o := ownedAssignment{s, s.people[0], s.people[0].wants[addresses[0]]}
	o.config.path, o.config.spelling = "clusters/all", 0
	o.mustApply(t)
	return o
}

// mustApply returns the plan, and the branches before and after. Without options, the next plan must be empty.
func (o ownedAssignment) mustApply(t *testing.T, options ...providertest.Option) (plan *providertest.Plan, before, after branchesState) {
	t.Helper()
	before = o.readBranches()
	plan, diags := o.runner.Apply(t.Context(), o.configuration(o.person), options...)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	after = o.readBranches()
	o.checkForeign(after)
	next, diags := o.runner.Plan(t.Context(), o.configuration(o.person))
	if diags.Err() != nil || len(options) == 0 && !next.Empty() {
		t.Errorf("the next plan is not empty: %v %s", next.Changes[0].After["changes"], diags)
	}
	return plan, before, after
}

// requireRefusal requires an error of the plan with this summary, and unchanged branches.
func (o ownedAssignment) requireRefusal(t *testing.T, summary string, options ...providertest.Option) providertest.Diagnostics {
	t.Helper()
	before := o.readBranches()
	plan, diags := o.runner.Apply(t.Context(), o.configuration(o.person), options...)
	if plan != nil || !diags.Has(summary) {
		t.Errorf("got diagnostics %s", diags)
	}
	if changed := before.changedBranch(o.readBranches()); changed != "" {
		t.Errorf("the refused plan changed %s", changed)
	}
	return diags
}

func changesOf(plan *providertest.Plan) string {
	lines, _ := plan.Change(addresses[0]).After["changes"].([]any)
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = fmt.Sprint(line)
	}
	return strings.Join(texts, "\n")
}

// requireUnchanged allows a number of commits, but no changed folders.
func requireUnchanged(t *testing.T, before, after branchesState, most int) {
	t.Helper()
	commits := 0
	for branch, count := range after.commits {
		commits += count - before.commits[branch]
	}
	if commits > most {
		t.Errorf("got %d commits", commits)
	}
	if !maps.Equal(before.folders, after.folders) {
		t.Errorf("got %[2]d folders, want %[1]d", len(before.folders), len(after.folders))
	}
}

func TestARespeltURLWritesNothing(t *testing.T) {
	t.Parallel()
	for spelling := range 5 {
		o := newOwnedAssignment(t)
		o.config.spelling, o.config.protection = spelling, "none"
		_, before, after := o.mustApply(t)
		requireUnchanged(t, before, after, 0)
	}
}

func TestARenameIsOneCommitWithoutAnyFolder(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.config.name, o.config.spelling, o.config.protection = "dev-eu", 2, "none"
	plan, before, after := o.mustApply(t)
	requireUnchanged(t, before, after, 1)
	if text := changesOf(plan); !strings.Contains(text, lineText(changes.Line{Kind: changes.HandoverLine, Names: []string{"dev"}})) {
		t.Errorf("got changes %q", text)
	}
	if slices.Contains(slices.Collect(maps.Values(after.owners)), "dev") {
		t.Error("the former name still has records")
	}
}

func TestAReplacementRemovesNothing(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		for _, protection := range []string{"", "none", "free"} {
			o := newOwnedAssignment(t)
			o.config.createFirst, o.config.protection = first, protection
			o.mustApply(t)
			// The commit names the new object in the records.
			plan, before, after := o.mustApply(t, providertest.Replace(addresses[0]))
			requireUnchanged(t, before, after, 1)
			if !plan.Change(addresses[0]).Action.Replaces() {
				t.Errorf("got action %s, want a replacement", plan.Change(addresses[0]).Action)
			}
			if state := o.runner.Now()[addresses[0]]; state.Current == nil || len(state.Deposed) > 0 {
				t.Errorf("the state has %v", state)
			}
			o.runner.Taint(addresses[0])
			_, before, after = o.mustApply(t)
			requireUnchanged(t, before, after, 1)
		}
	}
}

func TestAReplacementWithANewNameTakesTheFoldersOver(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		o := newOwnedAssignment(t)
		o.config.createFirst, o.config.name = first, "dev-eu"
		o.requireRefusal(t, "Folder does not belong to this assignment", providertest.Replace(addresses[0]))
		o.config.adopt = true
		_, before, after := o.mustApply(t, providertest.Replace(addresses[0]))
		for folder := range before.folders {
			if _, stays := after.folders[folder]; !stays || after.owners[folder] != "dev-eu" {
				t.Errorf("folder %v belongs to %q", folder, after.owners[folder])
			}
		}
		if state := o.runner.Now()[addresses[0]]; len(state.Deposed) > 0 {
			t.Errorf("the state has %v", state)
		}
	}
}

// No configuration contains a deposed object, so nobody could lift its protection.
func TestAReplacementThatCreatesFirstKeepsTheFormerLocation(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.config.createFirst, o.config.branch = true, "live"
	o.requireRefusal(t, "Mass deletion", providertest.Replace(addresses[0]))
	o.runner.Taint(addresses[0])
	_, before, after := o.mustApply(t)
	for folder := range before.folders {
		if _, stays := after.folders[folder]; !stays {
			t.Errorf("folder %v is missing", folder)
		}
	}
	if state := o.runner.Now()[addresses[0]]; len(state.Deposed) > 0 {
		t.Errorf("the state has %v", state)
	}
}

func TestTwoAssignmentsOfOneNameAreAnErrorAtPlan(t *testing.T) {
	t.Parallel()
	for _, spelling := range []int{0, 3, 4} { // the same URL, other spellings, a mirror
		o := newOwnedAssignment(t)
		second := *o.config
		second.spelling = spelling
		o.wants[addresses[1]] = &second
		o.requireRefusal(t, "Two assignments have the same name")
	}
}

func TestASecondStateOfOneNameRemovesNothingWithoutAdopt(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	another := ownedAssignment{o.sequence, o.people[1], &assignmentConfig{}}
	*another.config = *o.config
	another.config.shape.targets = [hostCount]uint8{0, 0, 1}
	another.wants[addresses[0]] = another.config
	another.requireRefusal(t, "Another assignment has this name")
	another.config.adopt = true
	another.requireRefusal(t, "Mass deletion")
	another.config.protection = "free"
	_, diags := another.runner.Plan(t.Context(), another.configuration(another.person))
	if !diags.Has("Folders are there already") || strings.Count(diags.String(), "- t") != 14 {
		t.Errorf("got diagnostics %s", diags)
	}
	if _, _, after := another.mustApply(t); len(after.folders) != 1 {
		t.Errorf("%d folders are left", len(after.folders))
	}
}

func TestAMoveIsShownAndStoppedByProtection(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(*assignmentConfig){
		"branch":     func(w *assignmentConfig) { w.branch = "live" },
		"path":       func(w *assignmentConfig) { w.path = "" },
		"repository": func(w *assignmentConfig) { w.repository = "two" },
	} {
		o := newOwnedAssignment(t)
		move(o.config)
		o.requireRefusal(t, "Mass deletion")
		o.config.protection = "free"
		_, diags := o.runner.Plan(t.Context(), o.configuration(o.person))
		plan, before, after := o.mustApply(t)
		if len(after.folders) != len(before.folders) {
			t.Errorf("%[1]s: got %[3]d folders, want %[2]d", name, len(before.folders), len(after.folders))
		}
		text := changesOf(plan)
		if name != "path" { // a plan for both locations has the lines in a warning, and as known after apply
			text = diags.String()
		}
		if !strings.Contains(text, "15 added, 15 removed") {
			t.Errorf("%s: got %q", name, text)
		}
		for folder := range before.folders {
			if _, stays := after.folders[folder]; stays {
				t.Errorf("%s: folder %v is still there", name, folder)
			}
		}
	}
}

// Other changes may be planned at the same time.
func TestARenamedBranchIsTheSameLocation(t *testing.T) {
	t.Parallel()
	world := newBareWorld(t)
	s := newSequence(t, 0, world, providertest.New(startProvider))
	o := ownedAssignment{s, s.people[0], s.people[0].wants[addresses[0]]}
	o.config.path, o.config.spelling, o.config.protection = "clusters/all", 0, "none"
	o.mustApply(t)
	rename := func(from, to string) {
		if _, err := world.git("one", nil, "branch", "-m", from, to); err != nil {
			t.Fatal(err)
		}
		o.config.branch = to
		delete(o.foreign, spot{"one", "live", "README.md"})
		delete(o.foreign, spot{"one", "dev", "README.md"})
	}
	if _, err := world.git("one", nil, "branch", "-D", "live"); err != nil {
		t.Fatal(err)
	}

	rename("dev", "live")
	_, diags := o.runner.Plan(t.Context(), o.configuration(o.person))
	if !diags.Has("Branch has another name now") {
		t.Errorf("got diagnostics %s", diags)
	}
	plan, before, after := o.mustApply(t)
	requireUnchanged(t, before, after, 0)
	if text := changesOf(plan); text != "" {
		t.Errorf("got changes %q", text)
	}
	if next, diags := o.runner.Plan(t.Context(), o.configuration(o.person), providertest.SkipRefresh()); diags.Err() != nil || !next.Empty() {
		t.Errorf("without a refresh, the next plan has %v: %s", next.Changes[0].After, diags)
	}

	rename("live", "dev")
	o.config.shape.version++
	plan, _, after = o.mustApply(t)
	if text := changesOf(plan); !strings.Contains(text, countLine(changes.Counts{Changed: 15})) {
		t.Errorf("got changes %q", text)
	}
	if commits := after.commits[branchOf{"one", "dev"}]; commits != 3 {
		t.Errorf("the branch has %d commits", commits)
	}
}

// Only the owner of a missing branch knows its new name.
func TestADestroyOfARenamedBranchReportsTheRemainingFolders(t *testing.T) {
	t.Parallel()
	world := newBareWorld(t)
	o := newOwnedAssignmentIn(t, world, providertest.New(startProvider))
	const missing = "Branch does not exist any more"
	o.config.protection = "free"
	o.mustApply(t)
	if plan, diags := o.runner.Plan(t.Context(), o.configuration(o.person), providertest.Destroy()); plan == nil || diags.Has(missing) {
		t.Errorf("the destroy plan has diagnostics %s", diags)
	}
	if _, err := world.git("one", nil, "branch", "-m", "dev", "next"); err != nil {
		t.Fatal(err)
	}
	for _, options := range [][]providertest.Option{{providertest.Destroy()}, {providertest.Destroy(), providertest.SkipRefresh()}} {
		plan, diags := o.runner.Plan(t.Context(), o.configuration(o.person), options...)
		if plan == nil || !diags.Has(missing) ||
			!strings.Contains(diags.String(), `the 15 folders of the assignment "`+o.config.name+`" at path "clusters/all" are still on it`) {
			t.Errorf("the destroy plan has diagnostics %s", diags)
		}
	}

	o.config.branch = "next"
	if plan, diags := o.runner.Apply(t.Context(), o.configuration(o.person)); plan == nil || diags.Err() != nil {
		t.Fatalf("got diagnostics %s", diags)
	}
	if _, diags := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Destroy()); diags.Err() != nil || diags.Has(missing) {
		t.Errorf("got diagnostics %s", diags)
	}
	for name := range world.files("one", "next") {
		if strings.Contains(name, "/w-") {
			t.Errorf("file %s is left", name)
		}
	}
}

func TestAReplacementThatMovesListsTheRemovedFolders(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(*assignmentConfig){
		"branch":     func(w *assignmentConfig) { w.branch = "live" },
		"path":       func(w *assignmentConfig) { w.path = "" },
		"repository": func(w *assignmentConfig) { w.repository = "two" },
	} {
		o := newOwnedAssignment(t)
		move(o.config)
		o.config.protection = "free"
		_, diags := o.runner.Plan(t.Context(), o.configuration(o.person), providertest.Replace(addresses[0]))
		count := 0
		for _, diagnostic := range diags {
			count += strings.Count(diagnostic.Detail, "- t")
			count += 15 * strings.Count(diagnostic.Detail, "15 removed")
		}
		if count != 15 {
			t.Errorf("%s: the plan lists %d removed folders, want 15: %s", name, count, diags)
		}
	}
	o := newOwnedAssignment(t)
	_, diags := o.runner.Plan(t.Context(), o.configuration(o.person), providertest.Replace(addresses[0]))
	if len(diags) > 0 {
		t.Errorf("a replacement in place has diagnostics %s", diags)
	}
	o.config.keep = true
	o.mustApply(t)
	o.config.path = ""
	if _, diags = o.runner.Plan(t.Context(), o.configuration(o.person), providertest.Replace(addresses[0])); strings.Contains(
		diags.String(),
		"- t",
	) {
		t.Errorf("a replacement that keeps its folders has diagnostics %s", diags)
	}
}

func TestProtectionStopsTheLossOfAllFoldersOfAHost(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.config.shape.targets[1] = 0 // a third of all folders
	diags := o.requireRefusal(t, "A host would lose everything")
	if !strings.Contains(diags.String(), `emptied_hosts = ["t1"]`) {
		t.Errorf("got diagnostics %s", diags)
	}
	o.config.protection = "free"
	if _, before, after := o.mustApply(t); len(before.folders)-len(after.folders) != targetCount {
		t.Errorf("got %[2]d folders, want %[1]d", len(before.folders), len(after.folders))
	}
}

func TestADestroyObeysTheLastAppliedProtection(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.requireRefusal(t, "Mass deletion", providertest.Destroy())
	delete(o.wants, addresses[0])
	o.requireRefusal(t, "Mass deletion")
	o.wants[addresses[0]] = o.config
	o.config.protection = "free"
	o.mustApply(t)
	if _, _, after := o.mustApply(t, providertest.Destroy()); len(after.folders) > 0 || len(o.runner.Now()) > 0 {
		t.Errorf("%d folders are left", len(after.folders))
	}
}

func TestARollbackReachesACommitBeforeARename(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	world, _ := o.world.(*memoryWorld)
	first, before := world.byName[o.config.repository].Tip(o.config.branch).String(), o.readBranches()
	o.config.shape.version, o.config.name = 1, "dev-eu"
	o.mustApply(t)
	configuration := o.configuration(o.person)
	configuration.Resources[addresses[0]].Attributes["rollback_to"] = first
	if _, diags := o.runner.Apply(t.Context(), configuration); diags.Err() != nil {
		t.Fatal(diags)
	}
	if !maps.Equal(before.folders, o.readBranches().folders) {
		t.Error("the folders differ from the commit")
	}
	if next, diags := o.runner.Plan(t.Context(), configuration); diags.Err() != nil || !next.Empty() {
		t.Errorf("the next plan is not empty: %s", diags)
	}
}
