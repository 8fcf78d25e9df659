package hydrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// TestComposerAgreesWithTracing composes random containers twice: with a composer, which caches results and traces only
// doubtful keys, and with a trace of every key.
func TestComposerAgreesWithTracing(t *testing.T) {
	t.Parallel()
	ambiguities, rounds := 0, acceptancetest.Count(400, 4_000)
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 13))
		f := &fleet.Fleet{Hydration: &fleet.Hydration{
			Lists: []string{"replace", "append", "merge"}[random.IntN(3)], ListKey: "a", OnConflict: "warn",
		}}
		config := fleet.Config{}
		for i := range 2 + random.IntN(7) {
			name := fmt.Sprint("c", i)
			f.ConfigContainers = append(f.ConfigContainers, fleet.ConfigContainer{
				Name: name, Priority: json.Number(fmt.Sprint(random.IntN(3))),
			})
			secrets := fleet.ContainerSecrets{References: map[string]*fleet.SecretReference{}}
			data := anyObject(random, 3)
			for range random.IntN(3) {
				key := string(rune('a' + random.IntN(4)))
				if delete(data, key); random.IntN(4) > 0 {
					secrets.References[key] = &fleet.SecretReference{Store: "vault", Key: fmt.Sprint(random.IntN(2))}
				} else {
					secrets.References[key] = nil
				}
			}
			if err := config.SetSecrets(&f.ConfigContainers[i], secrets); err != nil {
				t.Fatal(err)
			}
			if random.IntN(10) > 0 {
				text, err := fleet.CanonicalJSON(data)
				if err != nil {
					t.Fatal(err)
				}
				config[name] = text
			}
		}
		mergeIndex, err := newMergeIndex(f, config)
		if err != nil {
			t.Fatal(err)
		}
		composer := newComposer(mergeIndex)
		for range 6 { // cached results must not change snapshots
			var members []int32
			for i := range mergeIndex.containers {
				if random.IntN(3) > 0 {
					members = append(members, int32(i))
				}
			}
			snapshot, got := composer.snapshot(members)
			values, want, known := traceAll(mergeIndex, members)
			secrets := takeReferences(values)
			if known && !maps.Equal(snapshot.Secrets(), secrets) {
				t.Fatalf("seed %d: references %v, want %v\n%v", seed, snapshot.Secrets(), secrets, config)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: ambiguities %v, want %v\n%v", seed, got, want, config)
			}
			if snapshot.Known != known || known && (snapshot.JSON != canonicalOf(t, values) || canonicalOf(t, snapshot.Values()) != snapshot.JSON) {
				t.Fatalf(
					"seed %d: values %s and %s, want %s\n%v",
					seed,
					snapshot.JSON,
					canonicalOf(t, snapshot.Values()),
					canonicalOf(t, values),
					config,
				)
			}
			ambiguities += len(want)
		}
	}
	if ambiguities < rounds {
		t.Errorf("%d ambiguities in %d rounds are too few", ambiguities, rounds)
	}
}

func traceAll(e *mergeIndex, members []int32) (values map[string]any, found []ambiguity, known bool) {
	values, known = map[string]any{}, true
	certain := 0
	for _, member := range members {
		if !e.containers[member].known {
			known, certain = false, e.ranks[member]
		}
	}
	for _, key := range e.keys {
		var column []contribution
		for _, member := range members {
			if value, has := e.containers[member].data[key]; has {
				column = append(column, contribution{int(member), value})
			}
		}
		if len(column) == 0 {
			continue
		}
		traced := &report{ranks: e.ranks}
		value, remains := e.compose((&trace{to: traced}).child(escapePointer(key)), column)
		if remains {
			values[key] = value
		}
		for _, one := range traced.ambiguities {
			if e.ranks[one.containers[0]] >= certain {
				found = append(found, one)
			}
		}
	}
	return values, found, known
}

// takeReferences removes the references from values and returns them.
func takeReferences(values map[string]any) map[string]fleet.SecretReference {
	secrets := map[string]fleet.SecretReference{}
	for key, value := range values {
		if reference, isReference := value.(secretReference); isReference {
			secrets[key] = fleet.SecretReference(reference)
			delete(values, key)
		}
	}
	return secrets
}

func canonicalOf(t *testing.T, value any) string {
	t.Helper()
	text, err := fleet.CanonicalJSON(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func anyObject(random *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	for range random.IntN(4) {
		object[string(rune('a'+random.IntN(3)))] = anyValue(random, depth)
	}
	return object
}

func anyValue(random *rand.Rand, depth int) any {
	switch kind := random.IntN(12); {
	case kind < 6 && depth > 0:
		return anyObject(random, depth-1)
	case kind == 6 && depth > 0:
		list := []any{}
		for range random.IntN(3) {
			list = append(list, anyValue(random, depth-1))
		}
		return list
	case kind == 7:
		return nil
	}
	return fmt.Sprint(random.IntN(2))
}

// FuzzCompose composes three containers, the last two of equal rank.
func FuzzCompose(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"c":null,"b":2}}`, `{"a":[1]}`, uint8(0))
	f.Add(`{"a":[{"name":"x","v":{}}]}`, `{"a":[{"name":"x","v":{"w":1}}]}`, `{"a":{"":{"":null}}}`, uint8(1))
	f.Add(`{"a":{"b":{"c":{}}}}`, `{"a":{"b":null}}`, `{"a":{"b":{"c":{"d":[null]}}}}`, uint8(2))
	f.Fuzz(func(t *testing.T, a, b, c string, lists uint8) {
		if len(a)+len(b)+len(c) > 3_000 {
			t.Skip("large")
		}
		threeContainers := &fleet.Fleet{Hydration: &fleet.Hydration{Lists: []string{"replace", "append", "merge"}[lists%3], OnConflict: "warn"}}
		config := fleet.Config{"a": a, "b": b, "c": c}
		for name, priority := range map[string]json.Number{"a": "0", "b": "1", "c": "1"} {
			threeContainers.ConfigContainers = append(threeContainers.ConfigContainers, fleet.ConfigContainer{Name: name, Priority: priority})
		}
		mergeIndex, err := newMergeIndex(threeContainers, config)
		if err != nil {
			t.Skip("not three objects")
		}
		composer := newComposer(mergeIndex)
		for _, members := range [][]int32{{0, 1, 2}, {1, 2}, {0, 2}, {0, 1, 2}} {
			snapshot, got := composer.snapshot(members)
			values, want, _ := traceAll(mergeIndex, members)
			if fmt.Sprint(got) != fmt.Sprint(want) || snapshot.JSON != canonicalOf(t, values) {
				t.Errorf("members %v: got %s with ambiguities %v, want %s with %v", members, snapshot.JSON, got, canonicalOf(t, values), want)
			}
		}
	})
}
