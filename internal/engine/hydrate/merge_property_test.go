package hydrate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

var trials = acceptancetest.Count(500, 5_000)

var listModes = []string{"replace", "append", "merge"}

// randomValue uses few keys and values, so that nodes coincide.
func randomValue(random *rand.Rand, depth int, nulls bool) any {
	choice := random.IntN(9)
	switch {
	case choice == 0 && nulls:
		return nil
	case choice < 3 && depth > 0:
		return randomObject(random, depth-1, nulls)
	case choice < 5 && depth > 0:
		list := []any{}
		for range random.IntN(3) {
			element := randomValue(random, depth-1, nulls)
			if object, ok := element.(map[string]any); ok && random.IntN(3) > 0 {
				object["name"] = []any{"x", "y", json.Number("1"), true}[random.IntN(4)]
			}
			list = append(list, element)
		}
		return list
	case choice == 5:
		return json.Number(fmt.Sprint(random.IntN(2)))
	case choice == 6:
		return random.IntN(2) == 0
	}
	return []string{"s", "0123", ""}[random.IntN(3)]
}

func randomObject(random *rand.Rand, depth int, nulls bool) map[string]any {
	object := map[string]any{}
	for range random.IntN(4) {
		object[string(rune('a'+random.IntN(3)))] = randomValue(random, depth, nulls)
	}
	return object
}

func merge(t testing.TB, lists string, objects ...map[string]any) map[string]any {
	t.Helper()
	merged, err := hydrate.Merge(objects, fleet.Hydration{Lists: lists})
	if err != nil {
		t.Fatal(err)
	}
	return merged
}

func TestStepwiseMergeEqualsMergeAtOnce(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for range trials {
		a, b, c := randomObject(random, 3, true), randomObject(random, 3, true), randomObject(random, 3, true)
		for _, lists := range listModes {
			if once, stepwise := canonical(t, merge(t, lists, a, b, c)), canonical(t, merge(t, lists, merge(t, lists, a, b), c)); once != stepwise {
				t.Fatalf("%s of %v, %v, %v\nat once: %s\nstepwise: %s", lists, a, b, c, once, stepwise)
			}
		}
	}
}

// The order of the steps does not matter if each node has one type everywhere, nothing is removed, and the names in a list
// differ.
func TestMergeIsAssociativeForEqualTypes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	object := func() map[string]any {
		members := map[string]any{}
		for _, key := range []string{"scalar", "object", "list"} {
			if random.IntN(3) == 0 {
				continue
			}
			switch key {
			case "scalar":
				members[key] = fmt.Sprint(random.IntN(5))
			case "object":
				members[key] = map[string]any{string(rune('a' + random.IntN(3))): fmt.Sprint(random.IntN(5))}
			case "list":
				list := []any{fmt.Sprint(random.IntN(3))}
				for _, name := range []string{"x", "y"} {
					if random.IntN(2) == 0 {
						list = append(list, map[string]any{"name": name, string(rune('a' + random.IntN(2))): fmt.Sprint(random.IntN(5))})
					}
				}
				members[key] = list
			}
		}
		return members
	}
	for range trials {
		a, b, c := object(), object(), object()
		for _, lists := range listModes {
			left, right := merge(t, lists, merge(t, lists, a, b), c), merge(t, lists, a, merge(t, lists, b, c))
			if canonical(t, left) != canonical(t, right) {
				t.Fatalf("%s of %v, %v, %v\nleft first:  %v\nright first: %v", lists, a, b, c, left, right)
			}
		}
	}
}

func TestMergeIsIdempotent(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	for range trials {
		a := merge(t, "replace", randomObject(random, 3, true))
		if once, twice := canonical(t, a), canonical(t, merge(t, "replace", a, a)); once != twice {
			t.Fatalf("once: %s\ntwice: %s", once, twice)
		}
	}
}

func TestMergeNeitherChangesNorSharesItsArguments(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 4))
	for range trials {
		objects := []map[string]any{randomObject(random, 3, true), randomObject(random, 3, true), randomObject(random, 3, true)}
		before := []string{canonical(t, objects[0]), canonical(t, objects[1]), canonical(t, objects[2])}
		for _, lists := range listModes {
			merged := merge(t, lists, objects...)
			text := canonical(t, merged)
			for i := range objects {
				equal(t, "argument after merging", canonical(t, objects[i]), before[i])
			}
			scramble(merged)
			for i := range objects {
				equal(t, "argument after a change of the result", canonical(t, objects[i]), before[i])
			}
			again := merge(t, lists, objects...)
			isDistinct := hasDistinctNodes(again, map[string]bool{})
			if !isDistinct {
				t.Fatalf("%s: one value occurs at two nodes of the result: %s", lists, text)
			}
			equal(t, "merged again", canonical(t, again), text)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// scramble changes all parts of a value.
func scramble(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			scramble(member)
		}
		clear(value)
		value["scrambled"] = true
	case []any:
		for i, element := range value {
			scramble(element)
			value[i] = "scrambled"
		}
	}
}

// hasDistinctNodes reports whether each list and object occurs at one node only.
func hasDistinctNodes(value any, seen map[string]bool) bool {
	var members []any
	var identity string
	switch value := value.(type) {
	case map[string]any:
		identity = fmt.Sprintf("%p", value)
		for _, member := range value {
			members = append(members, member)
		}
	case []any:
		if len(value) == 0 {
			return true
		}
		identity = fmt.Sprintf("%p", value)
		members = value
	default:
		return true
	}
	if seen[identity] {
		return false
	}
	seen[identity] = true
	for _, member := range members {
		if !hasDistinctNodes(member, seen) {
			return false
		}
	}
	return true
}
