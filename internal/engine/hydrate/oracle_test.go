package hydrate_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// What follows hydrates in the plainest way: container after container, in the words of the design.

// tagged is a value together with the container that it comes from.
type tagged struct {
	value any
	from  string
}

// tag replaces what is no object and no list by tagged values, and null members by nil.
func tag(value any, from string) any {
	switch value := value.(type) {
	case nil:
		return nil
	case map[string]any:
		object := map[string]any{}
		for key, member := range value {
			object[key] = tag(member, from)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = tag(element, from)
			if element == nil {
				list[i] = tagged{nil, from}
			}
		}
		return list
	}
	return tagged{value, from}
}

func plainMerge(into, from any, hydration fleet.Hydration) any {
	switch from := from.(type) {
	case map[string]any:
		target, ok := into.(map[string]any)
		if !ok {
			target = map[string]any{}
		}
		merged := maps.Clone(target)
		for key, value := range from {
			if value == nil {
				delete(merged, key)
			} else {
				merged[key] = plainMerge(merged[key], value, hydration)
			}
		}
		return merged
	case []any:
		target, ok := into.([]any)
		if !ok || hydration.Lists == "replace" {
			target = nil
		}
		merged, isFirst := slices.Clone(target), target == nil
		for _, element := range from {
			found := false
			for i := range merged {
				if name := nameOf(element); !isFirst && hydration.Lists == "merge" && name != "" && nameOf(merged[i]) == name {
					merged[i], found = plainMerge(merged[i], element, hydration), true
				}
			}
			if !found {
				merged = append(merged, plainMerge(nil, element, hydration))
			}
		}
		return append([]any{}, merged...)
	}
	return from
}

func nameOf(element any) string {
	object, _ := element.(map[string]any)
	if name, ok := object["name"].(tagged); ok && name.value != nil {
		return fmt.Sprintf("%T %v", name.value, name.value)
	}
	return ""
}

func plainMatch(g *given, assignment *schedule.Assignment, wanted fleet.Labels) bool {
	for key, value := range wanted {
		sets := []fleet.Labels{assignment.Host.Labels, assignment.Target.Labels}
		if schedule.IsReserved(key) {
			sets = []fleet.Labels{assignment.Reserved(g.fleet.Environment)}
		}
		if !slices.ContainsFunc(sets, func(set fleet.Labels) bool { actual, has := set[key]; return has && actual == value }) {
			return false
		}
	}
	return true
}

func plainRank(a, b fleet.ConfigContainer) int {
	priority := func(c fleet.ConfigContainer) float64 { p, _ := c.Priority.Float64(); return p }
	return cmp.Or(cmp.Compare(priority(a), priority(b)), cmp.Compare(len(a.Labels), len(b.Labels)))
}

// composed is what containers give together.
type composed struct {
	values, secrets any // tagged
	clash           bool
}

// plainCompose composes values and references apart. A null removes both; beside a value, or a reference, of the same container
// it removes only the other.
func plainCompose(t *testing.T, g *given, order []fleet.ConfigContainer) composed {
	hydration := g.fleet.HydrationOrDefault()
	made := composed{values: map[string]any{}, secrets: map[string]any{}}
	for i := range order {
		nulls, given, data := map[string]any{}, map[string]any{}, parseAll(t, []string{g.config[order[i].Name]})[0]
		secrets, _, err := g.config.Secrets(&order[i])
		if err != nil {
			t.Fatal(err)
		}
		for key, reference := range secrets.References {
			if reference == nil {
				nulls[key] = nil
			} else {
				given[key] = tagged{*reference, order[i].Name}
			}
		}
		for key, value := range data {
			if value == nil {
				nulls[key] = nil
				delete(data, key)
			}
		}
		made.secrets = plainMerge(plainMerge(made.secrets, nulls, hydration), given, hydration)
		maps.DeleteFunc(nulls, func(key string, _ any) bool { return data[key] != nil })
		made.values = plainMerge(plainMerge(made.values, nulls, hydration), tag(data, order[i].Name), hydration)
	}
	for key := range made.secrets.(map[string]any) {
		_, both := made.values.(map[string]any)[key]
		made.clash = made.clash || both
	}
	return made
}

// text shows references as texts among the values.
func (c composed) text() map[string]any {
	values := untag(c.values).(map[string]any)
	for key := range c.secrets.(map[string]any) {
		values[key] = "some text"
	}
	return values
}

func (c composed) String() string { return fmt.Sprint(untag(c.values), untag(c.secrets)) }

// plainHydrate returns what remains, and whether another order of names would give something else.
func plainHydrate(t *testing.T, g *given, assignment *schedule.Assignment) (composed, bool) {
	hydration := g.fleet.HydrationOrDefault()
	var matched []fleet.ConfigContainer
	for _, container := range g.fleet.ConfigContainers {
		if plainMatch(g, assignment, container.Labels) {
			matched = append(matched, container)
		}
	}
	slices.SortFunc(matched, func(a, b fleet.ConfigContainer) int {
		if hydration.Precedence == "name" {
			a.Labels, b.Labels = nil, nil
		}
		return cmp.Or(plainRank(a, b), cmp.Compare(a.Name, b.Name))
	})
	made, ambiguous := plainCompose(t, g, matched), false
	if hydration.Precedence != "name" && len(matched) <= 5 {
		want := made.String()
		permute(slices.Clone(matched), 0, func(order []fleet.ConfigContainer) {
			if !ambiguous && slices.IsSortedFunc(order, plainRank) {
				ambiguous = plainCompose(t, g, order).String() != want
			}
		})
	}
	return made, ambiguous
}

func permute[T any](list []T, from int, yield func([]T)) {
	if from == len(list) {
		yield(list)
		return
	}
	for i := from; i < len(list); i++ {
		list[from], list[i] = list[i], list[from]
		permute(list, from+1, yield)
		list[from], list[i] = list[i], list[from]
	}
}

func untag(value any) any {
	switch value := value.(type) {
	case tagged:
		return value.value
	case map[string]any:
		object := map[string]any{}
		for key, member := range value {
			object[key] = untag(member)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = untag(element)
		}
		return list
	}
	return value
}

func plainOrigins(value any, pointer string, origins map[string]string) {
	switch value := value.(type) {
	case tagged:
		origins[pointer] = value.from
	case map[string]any:
		for key, member := range value {
			plainOrigins(member, pointer+"/"+key, origins)
		}
	case []any:
		for i, element := range value {
			plainOrigins(element, fmt.Sprintf("%s/%d", pointer, i), origins)
		}
	}
}

// randomFleet has few labels, keys and values, so that everything meets.
func randomFleet(random *rand.Rand) *given {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	g := dev().hydration(fleet.Hydration{
		Precedence: pick("", "", "", "name"), OnConflict: "warn", Lists: pick("replace", "replace", "append", "merge"),
	})
	some := func(keys ...string) labels {
		set := labels{}
		for _, key := range keys {
			if random.IntN(3) == 0 {
				set[key] = pick("1", "2")
			}
		}
		return set
	}
	for i := range 1 + random.IntN(5) {
		object := randomObject(random, 2, true)
		text, _ := fleet.CanonicalJSON(object)
		g.container(fmt.Sprint("c", i), some("x", "y", "workload", "cluster-type", "cluster"), text)
		if random.IntN(4) == 0 {
			g.priority(pick("1", "-1", "0", "1.0"))
		}
		g.secrets(randomReferences(random, object)...)
	}
	for i := range random.IntN(3) * random.IntN(2) * random.IntN(2) {
		g.schema(fmt.Sprint("s", i), some("x", "workload"), pick(
			`{"type":"object","required":["a"]}`,
			`{"properties":{"a":{"type":"string"},"b":{"minLength":1}}}`,
			`{"properties":{"a":{"type":["object","array"]}},"additionalProperties":false}`,
			`{"properties":{"c":true},"additionalProperties":{"not":{"type":"null"},"type":["object","string"]}}`,
			`{"minProperties":1,"properties":{"a":{"properties":{"b":{"type":"integer"}}}}}`,
			`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"$schema":"http://json-schema.org/draft-07/schema#","patternProperties":{"^[ab]$":{"type":"object","required":["c"]}}}`,
			`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"anyOf":[{"type":"string"},{"$recursiveRef":"#"}]}},"required":["a"]}`,
			`false`,
		))
	}
	// Hosts and targets are shared between assignments, as a schedule shares them.
	var hosts []*schedule.Host
	var targets []*schedule.Target
	for range 3 {
		var own []string
		if random.IntN(12) == 0 {
			own = append(own, `{"properties":{"b":{"type":"object","additionalProperties":{"type":"string"}}}}`)
		}
		g.assign(pick("1", "2"), pick("1", "2"), some("x", "y", "workload"), some("x", "y", "cluster"), own...)
		if random.IntN(3) == 0 {
			g.onCluster(pick("1", "2"))
		}
		hosts, targets = append(hosts, g.assignments[0].Host), append(targets, g.assignments[0].Target)
		g.assignments = nil
	}
	for range 1 + random.IntN(4) {
		g.assignments = append(g.assignments, &schedule.Assignment{Host: hosts[random.IntN(3)], Target: targets[random.IntN(3)]})
	}
	return g
}

// randomReferences are references of a container, mostly at keys that are no values elsewhere.
func randomReferences(random *rand.Rand, data map[string]any) []string {
	var references []string
	if random.IntN(3) > 0 {
		return nil
	}
	for _, key := range []string{"d", "e", "f", string(rune('a' + random.IntN(3)))} {
		if value, has := data[key]; random.IntN(2) == 0 || key < "d" && random.IntN(4) > 0 {
			continue
		} else if kind := random.IntN(4); kind == 0 || has && value != nil {
			references = append(references, key+"=null")
		} else {
			references = append(references, fmt.Sprintf("%s=vault:db%d@%d", key, kind/3, kind%2))
		}
	}
	return references
}

var randomFleets = acceptancetest.Count(400, 10_000)

func TestHydrationAgreesWithAnOracle(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 5))
	ambiguities, violations, references, clashes, compiled := 0, 0, 0, 0, map[string]*jsonschema.Schema{}
	for number := range randomFleets {
		g := randomFleet(random)
		result := g.hydrate(t)
		complaint := func(what string, got, want any) {
			model, _ := g.fleet.Model()
			t.Fatalf("fleet %d: %s\n got: %v\nwant: %v\n%s\n%v", number, what, got, want, model, g.config)
		}
		for i, assignment := range g.assignments {
			snapshot := result.All[i]
			made, ambiguous := plainHydrate(t, g, assignment)
			if clash := strings.Contains(report(result.Findings), "a key is either a value or a secret"); made.clash && !clash ||
				clash && len(g.assignments) == 1 && !made.clash {
				complaint("clash of "+assignment.Key(), report(result.Findings), made.clash)
			}
			if made.clash {
				clashes++
				continue
			}
			values := made.values
			if want := canonical(t, untag(values)); snapshot.JSON != want || canonical(t, snapshot.Values()) != want {
				complaint("values of "+assignment.Key(), snapshot.JSON, want)
			}
			want := map[string]fleet.SecretReference{}
			for key, reference := range made.secrets.(map[string]any) {
				want[key] = reference.(tagged).value.(fleet.SecretReference)
			}
			if !maps.Equal(snapshot.Secrets(), want) {
				complaint("references of "+assignment.Key(), snapshot.Secrets(), want)
			}
			references += len(want)
			origins, got := map[string]string{}, map[string]string{}
			plainOrigins(values, "", origins)
			plainOrigins(made.secrets, "", origins)
			for pointer, origin := range snapshot.Provenance() {
				if _, scalar := origins[pointer]; scalar { // the oracle does not say where what is empty comes from
					got[pointer] = origin.Container
				}
			}
			if !maps.Equal(origins, got) {
				complaint("provenance of "+assignment.Key(), got, origins)
			}

			single := result
			if len(g.assignments) > 1 {
				alone := *g
				alone.assignments = g.assignments[i : i+1]
				single = alone.hydrate(t)
			}
			if g.fleet.Hydration.Lists == "replace" && strings.Contains(report(single.Warnings), "is ambiguous") != ambiguous {
				complaint("ambiguity of "+assignment.Key(), report(single.Warnings), ambiguous)
			}
			valid := plainValid(g, assignment, made.text(), compiled)
			if (len(single.Findings) == 0) != valid {
				complaint("validity of "+assignment.Key(), report(single.Findings), valid)
			}
			if ambiguous {
				ambiguities++
			}
			if !valid {
				violations++
			}
		}
	}
	if ambiguities < randomFleets/20 || violations < randomFleets/50 || references < randomFleets/5 || clashes < randomFleets/100 {
		t.Errorf(
			"%d ambiguities, %d violations, %d references, %d clashes: the fleets are too tame",
			ambiguities,
			violations,
			references,
			clashes,
		)
	}
}

// plainValid asks the validator alone.
func plainValid(g *given, assignment *schedule.Assignment, values any, compiled map[string]*jsonschema.Schema) bool {
	schemas := slices.Clone(assignment.Target.Target.ConfigSchemas)
	for _, declared := range g.fleet.ConfigSchemas {
		if plainMatch(g, assignment, declared.Labels) {
			schemas = append(schemas, declared.Schema)
		}
	}
	for _, text := range schemas {
		if compiled[text] == nil {
			compiled[text] = jsonschema.MustCompileString("schema:///schema.json", text)
		}
		if compiled[text].Validate(values) != nil {
			return false
		}
	}
	return true
}

func TestOneChangedValueChangesTheVersionsThatItReachesAndNoOthers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 6))
	changed := 0
	for number := range randomFleets / 5 {
		g := randomFleet(random)
		container := g.fleet.ConfigContainers[random.IntN(len(g.fleet.ConfigContainers))].Name
		data := parseAll(t, []string{g.config[container]})[0]
		data[string(rune('a'+random.IntN(3)))] = json.Number("7")
		g.config = maps.Clone(g.config)
		delete(g.config, fleet.SecretsEntry(container)) // which may have the same key
		before := g.hydrate(t)
		g.config[container] = canonical(t, data)
		after := g.hydrate(t)
		for i, assignment := range g.assignments {
			made, _ := plainHydrate(t, g, assignment)
			if made.clash || strings.Contains(report(before.Findings), "a key is either a value or a secret") {
				continue
			}
			same := canonical(t, untag(made.values)) == before.All[i].JSON
			if (before.All[i].Version == after.All[i].Version) != same {
				t.Fatalf("fleet %d, %s: versions %s and %s, values the same: %t",
					number, assignment.Key(), before.All[i].Version, after.All[i].Version, same)
			}
			if !same {
				changed++
			}
		}
	}
	if changed < randomFleets/20 {
		t.Errorf("only %d snapshots changed", changed)
	}
}

func TestOrderOfInputIsNoMatter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	for range randomFleets / 5 {
		g := randomFleet(random)
		describeAll := func() string {
			result := g.hydrate(t)
			lines := []string{report(result.Findings), report(result.Warnings), fmt.Sprint(g.idle(t))}
			for _, snapshot := range result.All {
				lines = append(lines, snapshot.JSON, fmt.Sprint(snapshot.Containers()))
			}
			return strings.Join(lines, "\n")
		}
		want := describeAll()
		random.Shuffle(len(g.fleet.ConfigContainers), func(i, j int) {
			g.fleet.ConfigContainers[i], g.fleet.ConfigContainers[j] = g.fleet.ConfigContainers[j], g.fleet.ConfigContainers[i]
		})
		random.Shuffle(len(g.fleet.ConfigSchemas), func(i, j int) {
			g.fleet.ConfigSchemas[i], g.fleet.ConfigSchemas[j] = g.fleet.ConfigSchemas[j], g.fleet.ConfigSchemas[i]
		})
		equal(t, "result", describeAll(), want)
	}
}
