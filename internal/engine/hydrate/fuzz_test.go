package hydrate_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// FuzzMerge merges any objects in every mode, and checks the laws of merging.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":{"b":null}}`, `{"a":[1]}`, "name")
	f.Add(`{"a":[{"name":"x","v":[{"name":1}]}]}`, `{"a":[{"name":"x","v":[{"name":1.0,"w":{}}]},null,{}]}`, `{}`, "name")
	f.Add(`{"":{"":{}}}`, `{"":{"":null}}`, `{"":null}`, "")
	f.Add(`{"a":{"b":1}}`, `{"a":1}`, `{"a":{"c":[[],{}]}}`, "id")
	f.Fuzz(func(t *testing.T, a, b, c, key string) {
		var objects []map[string]any
		for _, text := range []string{a, b, c} {
			value, err := fleet.ParseJSON(text)
			object, ok := value.(map[string]any)
			if err != nil || !ok || len(text) > 1000 {
				t.Skip("not three objects")
			}
			if _, err := fleet.CanonicalJSON(value); err != nil {
				t.Skip("no canonical form")
			}
			objects = append(objects, object)
		}
		for _, lists := range listModes {
			options := fleet.Hydration{Lists: lists, ListKey: key}
			mergeAll := func(objects ...map[string]any) map[string]any {
				merged, err := hydrate.Merge(objects, options)
				if err != nil {
					t.Fatal(err)
				}
				return merged
			}
			before := canonical(t, []any{objects[0], objects[1], objects[2]})
			once := canonical(t, mergeAll(objects...))
			equal(t, lists+" by steps", canonical(t, mergeAll(mergeAll(objects[0], objects[1]), objects[2])), once)
			equal(t, lists+" of the result alone", canonical(t, mergeAll(mergeAll(objects...))), once)
			scramble(mergeAll(objects...))
			equal(t, lists+" leaves its arguments alone", canonical(t, []any{objects[0], objects[1], objects[2]}), before)
		}
	})
}

// isEmbeddable reports whether a schema means the same inside of another: it has no references, and names neither itself
// nor a draft.
func isEmbeddable(schema string) bool { return !strings.ContainsAny(schema, "$\\") }

// FuzzSchema checks values against any text as a schema. Nothing panics, findings are stable, and the same schema in allOf
// accepts the same values.
func FuzzSchema(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","required":["A"],"properties":{"A":{"type":"integer","minimum":1}},"additionalProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","properties":{"A":{"exclusiveMinimum":true,"minimum":1}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"unevaluatedProperties":{"$recursiveRef":"#"}}`,
		`{"$dynamicAnchor":"x","$defs":{"y":{"$anchor":"z"}},"allOf":[{"$ref":"#z"},{"$dynamicRef":"#x"}]}`,
		`{"anyOf":[{"if":true,"then":false},{"not":{"const":null}}],"dependentRequired":{"A":["Z"]}}`,
		`{"$ref":"https://example.com/x"}`, `{"patternProperties":{"(":1}}`, `{"multipleOf":0.1,"maximum":1e400}`, `true`, `[]`, `{"$id":"::"}`, `{"$id":"?"}`,
	} {
		f.Add(schema, `{"A":"911","B":{"x":[1,"2",null]}}`)
	}
	f.Fuzz(func(t *testing.T, schema, data string) {
		fleettest.Bounded(t, schema, func() { _ = hydrate.CheckSchema(schema) })
		if value, err := fleet.ParseJSON(data); err != nil || len(data) > 1000 || len(schema) > 4000 {
			t.Skip("not values")
		} else if _, ok := value.(map[string]any); !ok {
			t.Skip("not values")
		}
		for _, g := range []*fleetBuilder{dev().container("c", nil, data), dev().configMap("c", nil, data)} {
			builder := g.schema("s", nil, schema).assign("drone", "hello", nil, nil)
			first, err := tryHydrate(builder)
			if err != nil {
				t.Skip("refused")
			}
			again, _ := tryHydrate(builder)
			equal(t, "findings are the same each time", findingLines(again.Findings), findingLines(first.Findings))
			advice := first.Advisor().ForAssignment(0, builder.assignments[0])
			for _, pointer := range advice.Unasked {
				if _, asked := advice.Asked[pointer]; asked {
					t.Errorf("%s is both asked for and not asked for", pointer)
				}
			}

			whole := dev()
			whole.fleet.ConfigContainers, whole.config = g.fleet.ConfigContainers, g.config
			whole.schema("s", nil, `{"allOf":[`+schema+`]}`).assign("drone", "hello", nil, nil)
			if _, err := fleet.ParseJSON(schema); err != nil {
				continue
			}
			if second := whole.hydrate(t); isEmbeddable(schema) && len(second.Findings) == 0 != (len(first.Findings) == 0) {
				t.Errorf("alone: %s\nin allOf: %s", findingLines(first.Findings), findingLines(second.Findings))
			}
		}
	})
}
