package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
)

// owned is one person with one assignment of 15 folders, at a Git host in memory.
type owned struct {
	*sequence
	*person
	w *wanted
}

func newOwned(t *testing.T) owned {
	t.Helper()
	world := newMemoryWorld(t, true)
	s := newSequence(t, 0, world, providertest.New(world.start), providertest.New(world.start))
	o := owned{s, s.people[0], s.people[0].wants[addresses[0]]}
	o.w.path, o.w.way = "clusters/all", 0
	o.applied(t)
	return o
}

// applied applies, which must succeed, and returns the plan, and what was before and is now.
func (o owned) applied(t *testing.T, options ...providertest.Option) (plan *providertest.Plan, before, after sight) {
	t.Helper()
	before = o.look()
	plan, said := o.runner.Apply(t.Context(), o.configuration(o.person), options...)
	if said.Err() != nil {
		t.Fatal(said.Err())
	}
	after = o.look()
	o.checkForeign(after)
	next, said := o.runner.Plan(t.Context(), o.configuration(o.person))
	if said.Err() != nil || len(options) == 0 && !next.Empty() {
		t.Errorf("after it the next plan is not empty: %v %s", next.Changes[0].After["changes"], said)
	}
	return plan, before, after
}

// refused applies, which must fail at plan with this summary, and change nothing.
func (o owned) refused(t *testing.T, summary string, options ...providertest.Option) providertest.Diagnostics {
	t.Helper()
	before := o.look()
	plan, said := o.runner.Apply(t.Context(), o.configuration(o.person), options...)
	if plan != nil || !said.Has(summary) {
		t.Errorf("said is %s", said)
	}
	if changed := before.differs(o.look()); changed != "" {
		t.Errorf("%s is changed", changed)
	}
	return said
}

func changesOf(plan *providertest.Plan) string {
	lines, _ := plan.Change(addresses[0]).After["changes"].([]any)
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = fmt.Sprint(line)
	}
	return strings.Join(texts, "\n")
}

// unchanged expects at most so many commits, and no folder with other content.
func unchanged(t *testing.T, before, after sight, most int) {
	t.Helper()
	made := 0
	for at, count := range after.commits {
		made += count - before.commits[at]
	}
	if made > most {
		t.Errorf("%d commits are made", made)
	}
	if !maps.Equal(before.folders, after.folders) {
		t.Errorf("of %d folders %d are left", len(before.folders), len(after.folders))
	}
}

func TestARespeltURLWritesNothing(t *testing.T) {
	t.Parallel()
	for way := range 5 {
		o := newOwned(t)
		o.w.way, o.w.protection = way, "none"
		_, before, after := o.applied(t)
		unchanged(t, before, after, 0)
	}
}

func TestARenameIsOneCommitWithoutAnyFolder(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	o.w.name, o.w.way, o.w.protection = "dev-eu", 2, "none"
	plan, before, after := o.applied(t)
	unchanged(t, before, after, 1)
	if text := changesOf(plan); !strings.Contains(text, `"dev" hands over its folders unchanged: nothing is removed`) {
		t.Errorf("the plan says %q", text)
	}
	if slices.Contains(slices.Collect(maps.Values(after.owners)), "dev") {
		t.Error("the former name still has records")
	}
}

func TestAReplacementRemovesNothing(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		for _, protection := range []string{"", "none", "free"} {
			o := newOwned(t)
			o.w.first, o.w.protection = first, protection
			o.applied(t)
			plan, before, after := o.applied(t, providertest.Replace(addresses[0]))
			unchanged(t, before, after, 0)
			if !plan.Change(addresses[0]).Action.Replaces() {
				t.Errorf("the plan is to %s", plan.Change(addresses[0]).Action)
			}
			if left := o.runner.Now()[addresses[0]]; left.Current == nil || len(left.Deposed) > 0 {
				t.Errorf("the state has %v", left)
			}
			o.runner.Taint(addresses[0])
			_, before, after = o.applied(t)
			unchanged(t, before, after, 0)
		}
	}
}

func TestAReplacementWithANewNameTakesTheFoldersOver(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		o := newOwned(t)
		o.w.first, o.w.name = first, "dev-eu"
		o.refused(t, "Folder does not belong to this assignment", providertest.Replace(addresses[0]))
		o.w.adopt = true
		_, before, after := o.applied(t, providertest.Replace(addresses[0]))
		for folder := range before.folders {
			if _, stays := after.folders[folder]; !stays || after.owners[folder] != "dev-eu" {
				t.Errorf("%v belongs to %q", folder, after.owners[folder])
			}
		}
		if left := o.runner.Now()[addresses[0]]; len(left.Deposed) > 0 {
			t.Errorf("the state has %v", left)
		}
	}
}

// Nobody could lift protection from an object that is deposed: it is in no configuration.
func TestWhatACreatedFirstReplacementLeavesElsewhereStays(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	o.w.first, o.w.branch = true, "live"
	o.refused(t, "Mass deletion", providertest.Replace(addresses[0]))
	o.runner.Taint(addresses[0])
	_, before, after := o.applied(t)
	for folder := range before.folders {
		if _, stays := after.folders[folder]; !stays {
			t.Errorf("%v is gone", folder)
		}
	}
	if left := o.runner.Now()[addresses[0]]; len(left.Deposed) > 0 {
		t.Errorf("the state has %v", left)
	}
}

func TestTwoAssignmentsOfOneNameAreAnErrorAtPlan(t *testing.T) {
	t.Parallel()
	for _, way := range []int{0, 3, 4} { // the same URL, in other letters, of a mirror
		o := newOwned(t)
		second := *o.w
		second.way = way
		o.wants[addresses[1]] = &second
		o.refused(t, "Two assignments have the same name")
	}
}

func TestASecondStateOfOneNameRemovesNothingUnasked(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	another := owned{o.sequence, o.people[1], &wanted{}}
	*another.w = *o.w
	another.w.shape.goes = [hostCount]uint8{0, 0, 1}
	another.wants[addresses[0]] = another.w
	another.refused(t, "Another assignment has this name")
	another.w.adopt = true
	another.refused(t, "Mass deletion")
	another.w.protection = "free"
	plan, _, after := another.applied(t)
	if len(after.folders) != 1 || !strings.Contains(changesOf(plan), "14 are removed") {
		t.Errorf("%d folders are left, and the plan says %q", len(after.folders), changesOf(plan))
	}
}

func TestAMoveIsShownAndHeldByProtection(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(*wanted){
		"branch":     func(w *wanted) { w.branch = "live" },
		"path":       func(w *wanted) { w.path = "" },
		"repository": func(w *wanted) { w.repository = "two" },
	} {
		o := newOwned(t)
		move(o.w)
		o.refused(t, "Mass deletion")
		o.w.protection = "free"
		plan, before, after := o.applied(t)
		if len(after.folders) != len(before.folders) {
			t.Errorf("%s: of %d folders %d are left", name, len(before.folders), len(after.folders))
		}
		if text := changesOf(plan); !strings.Contains(text, "15 are added; 15 are removed") {
			t.Errorf("%s: the plan says %q", name, text)
		}
		for folder := range before.folders {
			if _, stays := after.folders[folder]; stays {
				t.Errorf("%s: %v is still there", name, folder)
			}
		}
	}
}

func TestAHostThatWouldLoseEverythingIsHeldByItself(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	o.w.shape.goes[1] = 0 // a third of all
	said := o.refused(t, "A host would lose everything")
	if !strings.Contains(said.String(), `emptied_hosts = ["t1"]`) {
		t.Errorf("said is %s", said)
	}
	o.w.protection = "free"
	if _, before, after := o.applied(t); len(before.folders)-len(after.folders) != targetCount {
		t.Errorf("of %d folders %d are left", len(before.folders), len(after.folders))
	}
}

func TestADestroyIsHeldByWhatWasAppliedLast(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	o.refused(t, "Mass deletion", providertest.Destroy())
	delete(o.wants, addresses[0])
	o.refused(t, "Mass deletion")
	o.wants[addresses[0]] = o.w
	o.w.protection = "free"
	o.applied(t)
	if _, _, after := o.applied(t, providertest.Destroy()); len(after.folders) > 0 || len(o.runner.Now()) > 0 {
		t.Errorf("%d folders are left", len(after.folders))
	}
}

func TestARollbackReachesACommitBeforeARename(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	world, _ := o.world.(*memoryWorld)
	first, before := world.at[o.w.repository].Tip(o.w.branch).String(), o.look()
	o.w.shape.version, o.w.name = 1, "dev-eu"
	o.applied(t)
	configuration := o.configuration(o.person)
	configuration.Resources[addresses[0]].Attributes["rollback_to"] = first
	if _, said := o.runner.Apply(t.Context(), configuration); said.Err() != nil {
		t.Fatal(said)
	}
	if !maps.Equal(before.folders, o.look().folders) {
		t.Error("the folders are not what the commit has")
	}
	if next, said := o.runner.Plan(t.Context(), configuration); said.Err() != nil || !next.Empty() {
		t.Errorf("after it the next plan is not empty: %s", said)
	}
}
