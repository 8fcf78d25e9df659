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

// The functions with the prefix plain hydrate in the simplest way: container by container, as the design describes it.

// tagged is a value and its container.
type tagged struct {
	value any
	from  string
}

// tag wraps scalars in tagged values. Null members become nil.
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

func plainMatch(g *fleetBuilder, assignment *schedule.Assignment, wanted fleet.Labels) bool {
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

// composed is the result of several containers.
type composed struct {
	values, secrets any // tagged
	clash           bool
}

// plainCompose composes values and references separately. A null removes both. Beside a value or a reference of the same
// container, it removes only the other.
func plainCompose(t *testing.T, g *fleetBuilder, order []fleet.ConfigContainer) composed {
	hydration := g.fleet.HydrationOrDefault()
	composition := composed{values: map[string]any{}, secrets: map[string]any{}}
	for i := range order {
		nulls, references, data := map[string]any{}, map[string]any{}, parseAll(t, []string{g.config[order[i].Name]})[0]
		secrets, _, err := g.config.Secrets(&order[i])
		if err != nil {
			t.Fatal(err)
		}
		for key, reference := range secrets.References {
			if reference == nil {
				nulls[key] = nil
			} else {
				references[key] = tagged{*reference, order[i].Name}
			}
		}
		for key, value := range data {
			if value == nil {
				nulls[key] = nil
				delete(data, key)
			}
		}
		composition.secrets = plainMerge(plainMerge(composition.secrets, nulls, hydration), references, hydration)
		maps.DeleteFunc(nulls, func(key string, _ any) bool { return data[key] != nil })
		composition.values = plainMerge(plainMerge(composition.values, nulls, hydration), tag(data, order[i].Name), hydration)
	}
	for key := range composition.secrets.(map[string]any) {
		_, both := composition.values.(map[string]any)[key]
		composition.clash = composition.clash || both
	}
	return composition
}

// text returns the values, with a text for each reference.
func (c composed) text() map[string]any {
	values := untag(c.values).(map[string]any)
	for key := range c.secrets.(map[string]any) {
		values[key] = "some text"
	}
	return values
}

func (c composed) String() string { return fmt.Sprint(untag(c.values), untag(c.secrets)) }

// plainHydrate returns the composed values, and whether another order of names would change them.
func plainHydrate(t *testing.T, g *fleetBuilder, assignment *schedule.Assignment) (composed, bool) {
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
	composition, ambiguous := plainCompose(t, g, matched), false
	if hydration.Precedence != "name" && len(matched) <= 5 {
		want := composition.String()
		permute(slices.Clone(matched), 0, func(order []fleet.ConfigContainer) {
			if !ambiguous && slices.IsSortedFunc(order, plainRank) {
				ambiguous = plainCompose(t, g, order).String() != want
			}
		})
	}
	return composition, ambiguous
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

// randomFleet uses few labels, keys and values, so that many coincide.
func randomFleet(random *rand.Rand) *fleetBuilder {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	g := dev().hydration(fleet.Hydration{
		Precedence: pick("", "", "", "name"), OnConflict: "warn", Lists: pick("replace", "replace", "append", "merge"),
	})
	randomLabels := func(keys ...string) labels {
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
		g.container(fmt.Sprint("c", i), randomLabels("x", "y", "workload", "cluster-type", "cluster"), text)
		if random.IntN(4) == 0 {
			g.priority(pick("1", "-1", "0", "1.0"))
		}
		g.secrets(randomReferences(random, object)...)
	}
	for i := range random.IntN(3) * random.IntN(2) * random.IntN(2) {
		g.schema(fmt.Sprint("s", i), randomLabels("x", "workload"), pick(
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
	// Assignments share hosts and targets, as in a schedule.
	var hosts []*schedule.Host
	var targets []*schedule.Target
	for range 3 {
		var schemas []string
		if random.IntN(12) == 0 {
			schemas = append(schemas, `{"properties":{"b":{"type":"object","additionalProperties":{"type":"string"}}}}`)
		}
		g.assign(pick("1", "2"), pick("1", "2"), randomLabels("x", "y", "workload"), randomLabels("x", "y", "cluster"), schemas...)
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

// randomReferences returns references of a container, mostly for keys without values.
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
		fail := func(subject string, got, want any) {
			model, _ := g.fleet.Model()
			t.Fatalf("fleet %d: %s\n got: %v\nwant: %v\n%s\n%v", number, subject, got, want, model, g.config)
		}
		for i, assignment := range g.assignments {
			snapshot := result.All[i]
			composition, ambiguous := plainHydrate(t, g, assignment)
			if clash := strings.Contains(findingLines(result.Findings), "a key is either a value or a secret"); composition.clash && !clash ||
				clash && len(g.assignments) == 1 && !composition.clash {
				fail("clash of "+assignment.Key(), findingLines(result.Findings), composition.clash)
			}
			if composition.clash {
				clashes++
				continue
			}
			values := composition.values
			if want := canonical(t, untag(values)); snapshot.JSON != want || canonical(t, snapshot.Values()) != want {
				fail("values of "+assignment.Key(), snapshot.JSON, want)
			}
			want := map[string]fleet.SecretReference{}
			for key, reference := range composition.secrets.(map[string]any) {
				want[key] = reference.(tagged).value.(fleet.SecretReference)
			}
			if !maps.Equal(snapshot.Secrets(), want) {
				fail("references of "+assignment.Key(), snapshot.Secrets(), want)
			}
			references += len(want)
			origins, got := map[string]string{}, map[string]string{}
			plainOrigins(values, "", origins)
			plainOrigins(composition.secrets, "", origins)
			for pointer, origin := range snapshot.Provenance() {
				if _, scalar := origins[pointer]; scalar { // the oracle has no origins of empty objects and lists
					got[pointer] = origin.Container
				}
			}
			if !maps.Equal(origins, got) {
				fail("provenance of "+assignment.Key(), got, origins)
			}

			single := result
			if len(g.assignments) > 1 {
				alone := *g
				alone.assignments = g.assignments[i : i+1]
				single = alone.hydrate(t)
			}
			if g.fleet.Hydration.Lists == "replace" && strings.Contains(findingLines(single.Warnings), "is ambiguous") != ambiguous {
				fail("ambiguity of "+assignment.Key(), findingLines(single.Warnings), ambiguous)
			}
			valid := plainValid(g, assignment, composition.text(), compiled)
			if (len(single.Findings) == 0) != valid {
				fail("validity of "+assignment.Key(), findingLines(single.Findings), valid)
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
			"%d ambiguities, %d violations, %d references, %d clashes are too few",
			ambiguities,
			violations,
			references,
			clashes,
		)
	}
}

// plainValid validates with the JSON Schema library alone.
func plainValid(g *fleetBuilder, assignment *schedule.Assignment, values any, compiled map[string]*jsonschema.Schema) bool {
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

func TestChangedValueChangesOnlyVersionsWithIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 6))
	changed := 0
	for number := range randomFleets / 5 {
		g := randomFleet(random)
		container := g.fleet.ConfigContainers[random.IntN(len(g.fleet.ConfigContainers))].Name
		data := parseAll(t, []string{g.config[container]})[0]
		data[string(rune('a'+random.IntN(3)))] = json.Number("7")
		g.config = maps.Clone(g.config)
		delete(g.config, fleet.SecretsEntry(container)) // it may have the same key
		before := g.hydrate(t)
		g.config[container] = canonical(t, data)
		after := g.hydrate(t)
		for i, assignment := range g.assignments {
			composition, _ := plainHydrate(t, g, assignment)
			if composition.clash || strings.Contains(findingLines(before.Findings), "a key is either a value or a secret") {
				continue
			}
			same := canonical(t, untag(composition.values)) == before.All[i].JSON
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

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	for range randomFleets / 5 {
		g := randomFleet(random)
		describeAll := func() string {
			result := g.hydrate(t)
			lines := []string{findingLines(result.Findings), findingLines(result.Warnings), fmt.Sprint(g.idle(t))}
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
