package hydrate_test

import (
	"math/rand/v2"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
)

func TestMatchNeedsNoValues(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		g := randomFleet(rand.New(rand.NewPCG(seed, 11)))
		result := g.hydrate(t)
		matched, err := hydrate.Match(&g.fleet, g.assignments)
		if err != nil {
			t.Fatal(err)
		}
		for i, snapshot := range result.All {
			equal(t, g.assignments[i].Key(), matched[i], snapshot.Containers())
		}
	}
}

func TestMatchSharesEqualLists(t *testing.T) {
	t.Parallel()
	g := dev().container("a", nil, "").container("west", labels{"region": "west"}, "").
		assign("drone", "hello", labels{"region": "west"}, nil).assign("large", "hello", labels{"region": "west"}, nil)
	matched, err := hydrate.Match(&g.fleet, g.assignments)
	if err != nil {
		t.Fatal(err)
	}
	if len(matched) != 2 || len(matched[0]) != 2 || &matched[0][0] != &matched[1][0] {
		t.Errorf("matched %v, want one list for both", matched)
	}
}

func TestMatchRefusesInvalidFleets(t *testing.T) {
	t.Parallel()
	_, err := hydrate.Match(&dev().container("a", nil, "").priority("high").fleet, nil)
	equal(t, "error", err, `config container "a": priority "high" is not a number`)
	_, err = hydrate.Match(&dev().hydration(fleet.Hydration{Lists: "zip"}).fleet, nil)
	equal(t, "error", err, `lists is "zip", and must be one of replace, append, merge`)
}

func TestDecidedByNamesOneContainer(t *testing.T) {
	t.Parallel()
	g := dev().
		container("a", nil, `{"A":1,"B":{"x":1,"y":{"z":2}},"C":{"x":1},"D":[1,2],"E":{"x":1},"F":null,"a/b":{"c~d":1}}`).
		container("b", labels{"region": "west"}, `{"B":{"x":2},"C":null,"D":[1],"E":"text","G":{}}`).
		assign("drone", "hello", labels{"region": "west"}, nil)
	snapshot := g.hydrate(t).All[0]
	for key, want := range map[string]string{"A": "a", "B": "b", "C": "b", "D": "b", "E": "b", "F": "a", "G": "b", "a/b": "a", "NOBODY": "", "": ""} {
		equal(t, "decides "+key, snapshot.DecidedBy(key), want)
	}
}
