package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// addSecondAssignment shrinks the first assignment to one folder on each host, lifts its protection, and adds a second at the
// same path.
func (o ownedAssignment) addSecondAssignment(t *testing.T) (second *assignmentConfig) {
	t.Helper()
	o.config.shape.targets, o.config.protection = [hostCount]uint8{1, 1, 1}, "free"
	o.mustApply(t)
	second = &assignmentConfig{}
	*second = *o.config
	second.name, second.shape.targets = "dev-eu", [hostCount]uint8{2, 0, 0}
	o.wants[addresses[1]] = second
	o.mustApply(t)
	return second
}

const handoverSummary = "One apply would remove and add the same folders"

func TestARenamedAddressWithoutMovedIsAnErrorOfThePlan(t *testing.T) {
	t.Parallel()
	for range acceptancetest.Count(2, 4) { // for both orders of plans
		o := newOwnedAssignment(t)
		o.config.shape.targets, o.config.protection = [hostCount]uint8{1, 1, 1}, "free"
		o.mustApply(t)
		o.wants[addresses[1]] = o.config
		delete(o.wants, addresses[0])
		diags := o.requireRefusal(t, handoverSummary)
		for _, want := range []string{`The assignment "dev" removes 3 folders that the assignment "dev" adds: clusters/all/t0/w-a`, "moved { from"} {
			if !strings.Contains(diags.String(), want) {
				t.Errorf("the diagnostics lack %q: %s", want, diags)
			}
		}
	}
}

func TestAHandoverBetweenAssignmentsTakesTwoApplies(t *testing.T) {
	t.Parallel()
	for range acceptancetest.Count(2, 4) {
		o := newOwnedAssignment(t)
		second := o.addSecondAssignment(t)
		first := *o.config
		o.config.shape.targets[0], second.shape.targets[0], second.adopt = 0, 3, true
		diags := o.requireRefusal(t, handoverSummary)
		for _, want := range []string{`The assignment "dev" removes 1 folder that the assignment "dev-eu" adds: clusters/all/t0/w-a`, `first set adopt = true on "dev-eu" while "dev" keeps them`} {
			if !strings.Contains(diags.String(), want) {
				t.Errorf("the diagnostics lack %q: %s", want, diags)
			}
		}
		before := o.readBranches()
		*o.config = first
		for _, shape := range []uint8{first.shape.targets[0], 0} { // first adopt, then remove
			o.config.shape.targets[0] = shape
			o.mustApply(t)
			now := o.readBranches()
			for folder := range before.folders {
				if _, stays := now.folders[folder]; !stays {
					t.Errorf("folder %v is missing", folder)
				}
			}
		}
		for folder, name := range o.readBranches().owners {
			if want := map[bool]string{true: "dev-eu", false: "dev"}[folder.host == "t0"]; name != want {
				t.Errorf("folder %v belongs to %q", folder, name)
			}
		}
	}
}

func TestTwoAssignmentsWithTheSameNewFoldersAreAnErrorOfThePlan(t *testing.T) {
	t.Parallel()
	for _, spelling := range []int{0, 3, 4} { // the same URL, other spellings, a mirror
		o := newOwnedAssignment(t)
		second := o.addSecondAssignment(t)
		o.config.shape.targets[2], second.shape.targets[2], second.spelling = 7, 6, spelling
		diags := o.requireRefusal(t, "Two assignments have the same folders")
		for _, want := range []string{`"dev"`, `"dev-eu"`, "both add 2 folders: clusters/all/t2/w-b, clusters/all/t2/w-c"} {
			if !strings.Contains(diags.String(), want) {
				t.Errorf("the diagnostics lack %q: %s", want, diags)
			}
		}
	}
}

// Another process applied the other assignment, so only records name its holder.
func TestADestroyRemovesNoFoldersOfAnotherHolder(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	o.config.protection = "free"
	o.mustApply(t)
	another := ownedAssignment{o.sequence, o.people[1], &assignmentConfig{}}
	*another.config = *o.config
	another.wants[addresses[0]] = another.config
	another.mustApply(t)
	before := o.readBranches()
	delete(o.wants, addresses[0])
	if _, diags := o.runner.Apply(t.Context(), o.configuration(o.person)); diags.Err() != nil {
		t.Fatal(diags)
	}
	requireUnchanged(t, before, o.readBranches(), 0)
	another.mustApply(t)
}
