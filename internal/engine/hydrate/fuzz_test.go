package hydrate_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// FuzzMerge merges any objects in every mode: what holds for all of them must hold.
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
			at := func(objects ...map[string]any) map[string]any {
				merged, err := hydrate.Merge(objects, options)
				if err != nil {
					t.Fatal(err)
				}
				return merged
			}
			before := canonical(t, []any{objects[0], objects[1], objects[2]})
			once := canonical(t, at(objects...))
			equal(t, lists+" by steps", canonical(t, at(at(objects[0], objects[1]), objects[2])), once)
			equal(t, lists+" of the result alone", canonical(t, at(at(objects...))), once)
			scramble(at(objects...))
			equal(t, lists+" leaves its arguments alone", canonical(t, []any{objects[0], objects[1], objects[2]}), before)
		}
	})
}

// standsAnywhere says whether a schema means the same inside of another: it refers to nothing, and
// names neither itself nor a draft.
func standsAnywhere(schema string) bool { return !strings.ContainsAny(schema, "$\\") }

// FuzzSchema checks values against any text as a schema: whatever it is, nothing panics, findings do
// not change from time to time, and values checked one by one fit when they fit as a whole.
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
		for _, g := range []*given{dev().container("c", nil, data), dev().configMap("c", nil, data)} {
			one := g.schema("s", nil, schema).assign("drone", "hello", nil, nil)
			first, err := hydrateError(one)
			if err != nil {
				t.Skip("refused")
			}
			again, _ := hydrateError(one)
			equal(t, "findings are the same each time", report(again.Findings), report(first.Findings))
			given := first.Advisor().ForAssignment(0, one.assignments[0])
			for _, pointer := range given.Unasked {
				if _, asked := given.Asked[pointer]; asked {
					t.Errorf("%s is asked for, and not asked for", pointer)
				}
			}

			whole := dev()
			whole.fleet.ConfigContainers, whole.config = g.fleet.ConfigContainers, g.config
			whole.schema("s", nil, `{"allOf":[`+schema+`]}`).assign("drone", "hello", nil, nil)
			if _, err := fleet.ParseJSON(schema); err != nil {
				continue
			}
			if second := whole.hydrate(t); standsAnywhere(schema) && len(second.Findings) == 0 != (len(first.Findings) == 0) {
				t.Errorf("alone: %s\nin allOf: %s", report(first.Findings), report(second.Findings))
			}
		}
	})
}
