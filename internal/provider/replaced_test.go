package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// heldReplacement plans to replace an assignment on another branch. Protection refuses the plan before a folder is removed. Terraform
// plans a tainted object without its state.
func heldReplacement(t *testing.T) ownedAssignment {
	t.Helper()
	o := newOwnedAssignment(t)
	o.config.branch = "live"
	o.runner.Taint(addresses[0])
	plan, diags := o.runner.Apply(t.Context(), o.configuration(o.person))
	if plan == nil || !diags.Has("Mass deletion") {
		t.Fatalf("got %s", diags)
	}
	return o
}

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
	o.config.protection = "free"
	o.mustApply(t)
	_, diags := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Destroy())
	if left := o.runner.Now(); diags.Err() != nil || len(left) > 0 {
		t.Errorf("the state has %v, and the destroy says %s", left, diags)
	}
	if left := len(o.readBranches().folders); left > 0 {
		t.Errorf("%d folders are left", left)
	}
}

func TestADestroyElsewhereAfterAHeldReplacementIsHeldByItsOwnProtection(t *testing.T) {
	t.Parallel()
	o := heldReplacement(t)
	o.config.branch, o.config.path, o.config.protection = "dev", "", "free"
	o.mustApply(t)
	_, diags := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Destroy())
	if left := o.runner.Now(); diags.Err() != nil || len(left) > 0 {
		t.Errorf("the state has %v, and the destroy says %s", left, diags)
	}
	if left := countFolders(o.readBranches(), "dev"); left > 0 {
		t.Errorf("%d folders are left", left)
	}
}

// interruptedReplacement replaces an assignment with create_before_destroy. The state still has the former object, deposed.
func interruptedReplacement(t *testing.T, change func(w *assignmentConfig)) ownedAssignment {
	t.Helper()
	o := newOwnedAssignment(t)
	o.config.createFirst, o.config.protection = true, "free"
	o.mustApply(t)
	former := o.runner.Now()[addresses[0]].Current
	change(o.config)
	o.mustApply(t, providertest.Replace(addresses[0]))
	workspace, _ := o.runner.(*providertest.Workspace)
	workspace.State[addresses[0]] = providertest.Instance{
		Current: workspace.State[addresses[0]].Current,
		Deposed: []*providertest.Object{former},
	}
	return o
}

func TestADeposedObjectRemovesNoFolder(t *testing.T) {
	t.Parallel()
	o := interruptedReplacement(t, func(*assignmentConfig) {})
	before := o.readBranches()
	plan, diags := o.runner.Apply(t.Context(), o.configuration(o.person))
	if diags.Err() != nil {
		t.Fatalf("got %s", diags)
	}
	if action := plan.Change(addresses[0]).Action; action != providertest.NoOp {
		t.Errorf("the planned action is %s, want no-op", action)
	}
	requireUnchanged(t, before, o.readBranches(), 0)
	if left := o.runner.Now()[addresses[0]]; left.Current == nil || len(left.Deposed) > 0 {
		t.Errorf("the state has %v", left)
	}
	o.mustApply(t)
}

func TestADeposedObjectAtAnotherLocationIsHeldAndReported(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.config.createFirst = true
	o.mustApply(t)
	former := o.runner.Now()[addresses[0]].Current
	o.config.branch = "live"
	o.runner.Taint(addresses[0])
	o.mustApply(t)
	workspace, _ := o.runner.(*providertest.Workspace)
	workspace.State[addresses[0]] = providertest.Instance{
		Current: workspace.State[addresses[0]].Current,
		Deposed: []*providertest.Object{former},
	}
	if diags := o.requireRefusal(t, "Mass deletion"); !strings.Contains(diags.String(), "terraform state rm") {
		t.Errorf("got %s", diags)
	}
	o.runner.Lose(addresses[0])
	o.importAssignment(o.person, addresses[0])
	o.mustApply(t)
}

// With create_before_destroy, Terraform destroys with the formerly applied attributes.
func TestAMovingReplacementUsesItsOwnOnDestroy(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("keep %t, create_before_destroy %t", keep, first), func(t *testing.T) {
				t.Parallel()
				o := newOwnedAssignment(t)
				o.config.keep, o.config.createFirst, o.config.protection = !keep, first, "free"
				o.mustApply(t)
				o.config.keep, o.config.branch = keep, "live"
				plan, diags := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Replace(addresses[0]))
				if diags.Err() != nil || !plan.Change(addresses[0]).Action.Replaces() {
					t.Fatalf("got %s", diags)
				}
				if diags.Has("Folders stay") != keep {
					t.Errorf("got %s", diags)
				}
				wantFolders := keep != first
				if left := countFolders(o.readBranches(), "dev"); left > 0 != wantFolders {
					t.Errorf("%d folders are at the former location", left)
				}
			})
		}
	}
}
