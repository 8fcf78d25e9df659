package provider_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
)

// heldReplacement is an assignment whose replacement at another branch was planned, since somebody has as much
// there, and then held by protection before anything was removed.
func heldReplacement(t *testing.T) owned {
	t.Helper()
	o := newOwned(t)
	another := owned{o.sequence, o.people[1], &wanted{}}
	*another.w = *o.w
	another.w.branch = "live"
	another.wants[addresses[0]] = another.w
	another.applied(t)

	o.w.branch = "live"
	plan, said := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Replace(addresses[0]))
	if plan == nil || !said.Has("Mass deletion") {
		t.Fatalf("said is %s", said)
	}
	return o
}

// foldersAt counts the folders on a branch.
func foldersAt(seen sight, branch string) int {
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
	o.applied(t)
	_, said := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Destroy())
	if left := o.runner.Now(); said.Err() != nil || len(left) > 0 {
		t.Errorf("the state has %v, and said is %s", left, said)
	}
	if left := len(o.look().folders); left > 0 {
		t.Errorf("%d folders are left", left)
	}
}

func TestADestroyElsewhereAfterAHeldReplacementIsHeldByItsOwnProtection(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		o := heldReplacement(t)
		o.w.branch, o.w.path, o.w.protection, o.w.first = "dev", "", "free", first
		o.applied(t)
		_, said := o.runner.Apply(t.Context(), o.configuration(o.person), providertest.Destroy())
		if left := o.runner.Now(); said.Err() != nil || len(left) > 0 {
			t.Errorf("the state has %v, and said is %s", left, said)
		}
		if left := foldersAt(o.look(), "dev"); left > 0 {
			t.Errorf("%d folders are left", left)
		}
	}
}
