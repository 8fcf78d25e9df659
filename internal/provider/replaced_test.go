package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// heldReplacement is an assignment whose replacement at another branch was planned, since Terraform plans a tainted
// object without its state, and then held by protection before anything was removed.
func heldReplacement(t *testing.T) ownedAssignment {
	t.Helper()
	o := newOwnedAssignment(t)
	o.w.branch = "live"
	o.runner.Taint(addresses[0])
	plan, said := o.runner.Apply(t.Context(), o.configuration(o.person))
	if plan == nil || !said.Has("Mass deletion") {
		t.Fatalf("said is %s", said)
	}
	return o
}

// countFolders counts the folders on a branch.
func countFolders(seen branchesState, branch string) int {
	count := 0
	for folder := range seen.folders {
		if folder.branch == branch {
			count++
		}
	}
	return count
}

func TestADestroyAfterAHeldReplacementIsHeldByItsOwnProtection(t *testing.T) {
	t.Parallel()
	o := heldReplacement(t)
	o.w.protection = "free"
	o.mustApply(t)
	_, said := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Destroy())
	if left := o.runner.Now(); said.Err() != nil || len(left) > 0 {
		t.Errorf("the state has %v, and said is %s", left, said)
	}
	if left := len(o.readBranches().folders); left > 0 {
		t.Errorf("%d folders are left", left)
	}
}

func TestADestroyElsewhereAfterAHeldReplacementIsHeldByItsOwnProtection(t *testing.T) {
	t.Parallel()
	o := heldReplacement(t)
	o.w.branch, o.w.path, o.w.protection = "dev", "", "free"
	o.mustApply(t)
	_, said := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Destroy())
	if left := o.runner.Now(); said.Err() != nil || len(left) > 0 {
		t.Errorf("the state has %v, and said is %s", left, said)
	}
	if left := countFolders(o.readBranches(), "dev"); left > 0 {
		t.Errorf("%d folders are left", left)
	}
}

// interruptedReplacement is an assignment whose replacement, created first, was interrupted: the state still has the object
// from before, deposed.
func interruptedReplacement(t *testing.T, change func(w *assignmentConfig)) ownedAssignment {
	t.Helper()
	o := newOwnedAssignment(t)
	o.w.createFirst, o.w.protection = true, "free"
	o.mustApply(t)
	former := o.runner.Now()[addresses[0]].Current
	change(o.w)
	o.mustApply(t, providertest.Replace(addresses[0]))
	workspace, _ := o.runner.(*providertest.Workspace)
	workspace.State[addresses[0]] = providertest.Instance{
		Current: workspace.State[addresses[0]].Current,
		Deposed: []*providertest.Object{former},
	}
	return o
}

func TestWhatAnInterruptedReplacementLeftDeposedTakesNoFolderAlong(t *testing.T) {
	t.Parallel()
	o := interruptedReplacement(t, func(*assignmentConfig) {})
	before := o.readBranches()
	plan, said := o.runner.Apply(t.Context(), o.configuration(o.person))
	if said.Err() != nil {
		t.Fatalf("said is %s", said)
	}
	if action := plan.Change(addresses[0]).Action; action != providertest.NoOp {
		t.Errorf("the plan is to %s", action)
	}
	requireUnchanged(t, before, o.readBranches(), 0)
	if left := o.runner.Now()[addresses[0]]; left.Current == nil || len(left.Deposed) > 0 {
		t.Errorf("the state has %v", left)
	}
	o.mustApply(t)
}

func TestWhatAnInterruptedReplacementLeftElsewhereIsHeldAndReported(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.w.createFirst = true
	o.mustApply(t)
	former := o.runner.Now()[addresses[0]].Current
	o.w.branch = "live"
	o.runner.Taint(addresses[0])
	o.mustApply(t)
	workspace, _ := o.runner.(*providertest.Workspace)
	workspace.State[addresses[0]] = providertest.Instance{
		Current: workspace.State[addresses[0]].Current,
		Deposed: []*providertest.Object{former},
	}
	if said := o.requireRefusal(t, "Mass deletion"); !strings.Contains(said.String(), "terraform state rm") {
		t.Errorf("said is %s", said)
	}
	o.runner.Lose(addresses[0])
	o.importAssignment(o.person, addresses[0])
	o.mustApply(t)
}

// With create_before_destroy Terraform destroys by what was applied before alone.
func TestAReplacementThatMovesGoesByItsOwnOnDestroy(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("keep %t, create_before_destroy %t", keep, first), func(t *testing.T) {
				t.Parallel()
				o := newOwnedAssignment(t)
				o.w.keep, o.w.createFirst, o.w.protection = !keep, first, "free"
				o.mustApply(t)
				o.w.keep, o.w.branch = keep, "live"
				plan, said := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Replace(addresses[0]))
				if said.Err() != nil || !plan.Change(addresses[0]).Action.Replaces() {
					t.Fatalf("said is %s", said)
				}
				if said.Has("Folders stay") != keep {
					t.Errorf("said is %s", said)
				}
				stays := keep != first
				if left := countFolders(o.readBranches(), "dev"); left > 0 != stays {
					t.Errorf("%d folders are at the former location", left)
				}
			})
		}
	}
}
