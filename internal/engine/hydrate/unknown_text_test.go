package hydrate_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

func TestSchemasTreatAReferenceAsAnUnknownText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ schema, want string }{
		"required":                           {`{"required":["P"]}`, ``},
		"a text":                             {`{"properties":{"P":{"type":"string"}}}`, ``},
		"one of types":                       {`{"properties":{"P":{"type":["integer","string"]}}}`, ``},
		"a number":                           {`{"properties":{"P":{"type":"integer","minimum":3}}}`, `/P must be an integer, not a reference to a secret`},
		"an object":                          {`{"properties":{"P":{"type":"object","required":["x"]}}}`, `/P must be an object, not a reference to a secret`},
		"rules about its text":               {`{"properties":{"P":{"pattern":"^a","minLength":90,"maxLength":0,"enum":["a",1],"format":"ipv4"}}}`, ``},
		"a constant":                         {`{"properties":{"P":{"const":"a"}}}`, ``},
		"an object as a constant":            {`{"properties":{"P":{"const":{"store":"vault","key":"db"}}}}`, `/P must be {"key":"db","store":"vault"}`},
		"an enum without texts":              {`{"properties":{"P":{"enum":[1,null]}}}`, `/P must be one of 1,null`},
		"its content":                        {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"P":{"contentEncoding":"base64","contentMediaType":"application/json"}}}`, ``},
		"a secret":                           {`{"properties":{"P":{"format":"secret"}}}`, ``},
		"a secret and its text":              {`{"properties":{"P":{"format":"secret","type":"string","minLength":90}},"required":["P"]}`, ``},
		"a value is no secret":               {`{"properties":{"A":{"format":"secret"}}}`, `/A must be a reference to a secret: give it in secrets of a config container, not in data`},
		"an object is no secret":             {`{"properties":{"O":{"format":"secret"}}}`, `/O must be a reference to a secret: give it in secrets of a config container, not in data`},
		"anything but a secret":              {`{"properties":{"P":{"not":{"format":"secret"}}}}`, `/P is of a kind that the schema rules out`},
		"a forbidden key":                    {`{"properties":{"A":true,"O":true},"additionalProperties":false}`, `/P is not an allowed key`},
		"other keys":                         {`{"properties":{"A":true,"O":true},"additionalProperties":{"type":"boolean"}}`, `/P must be a boolean, not a reference to a secret`},
		"a negated pattern":                  {`{"properties":{"P":{"not":{"pattern":"^a"}}}}`, ``},
		"a negated type":                     {`{"properties":{"P":{"not":{"type":"string"}}}}`, `/P is of a kind that the schema rules out`},
		"a double negation":                  {`{"properties":{"P":{"not":{"not":{"pattern":"^a"}}}}}`, ``},
		"any of a pattern and a number":      {`{"properties":{"P":{"anyOf":[{"pattern":"^a"},{"type":"integer"}]}}}`, ``},
		"any of an object and a number":      {`{"properties":{"P":{"anyOf":[{"type":"object"},{"type":"integer"}]}}}`, `/P fits none of the alternatives: must be an object, not a reference to a secret; must be an integer, not a reference to a secret`},
		"one of two patterns":                {`{"properties":{"P":{"oneOf":[{"pattern":"^a"},{"pattern":"^b"}]}}}`, ``},
		"one of a type and a pattern":        {`{"properties":{"P":{"oneOf":[{"type":"string"},{"pattern":"^b"}]}}}`, ``},
		"one of two that always fit":         {`{"properties":{"P":{"oneOf":[{"type":"string"},true]}}}`, `/P fits more than one of the alternatives, and must fit exactly one`},
		"one of none that fits":              {`{"properties":{"P":{"oneOf":[{"type":"integer"},false]}}}`, `/P fits none of the alternatives: must be an integer, not a reference to a secret; is not allowed`},
		"a condition on its text":            {`{"properties":{"P":{"if":{"pattern":"^a"},"then":{"type":"integer"},"else":{"type":"object"}}}}`, ``},
		"a condition that holds":             {`{"properties":{"P":{"if":{"type":"string"},"then":{"type":"integer"},"else":true}}}`, `/P must be an integer, not a reference to a secret`},
		"a condition that fails":             {`{"properties":{"P":{"if":{"type":"integer"},"then":true,"else":{"type":"object"}}}}`, `/P must be an object, not a reference to a secret`},
		"a condition of the whole":           {`{"if":{"properties":{"P":{"const":"dev"}}},"then":{"required":["Q"]},"else":{"required":["R"]}}`, ``},
		"a condition on its key":             {`{"if":{"required":["P"]},"then":{"properties":{"A":{"type":"boolean"}}}}`, `/A must be a boolean, not a string`},
		"the whole, with its text":           {`{"not":{"properties":{"P":{"minLength":1}}}}`, ``},
		"the whole, without it":              {`{"not":{"properties":{"A":{"minLength":1}}}}`, `is of a kind that the schema rules out`},
		"the whole as a constant":            {`{"const":{"P":"x"}}`, ``},
		"the whole as a number":              {`{"enum":[1]}`, `must be one of 1`},
		"the whole by alternatives":          {`{"oneOf":[{"properties":{"P":{"const":"a"}}},{"properties":{"P":{"const":"b"}}}]}`, ``},
		"unevaluated keys after a condition": {`{"if":{"properties":{"P":{"const":"a"}}},"then":{"properties":{"A":true}},"else":{"properties":{"O":true}},"unevaluatedProperties":false}`, ``},
		"keys that depend on it":             {`{"dependentRequired":{"P":["Q"]}}`, `/Q is required where P is, and no config container has it`},
		"schemas that depend on it":          {`{"dependentSchemas":{"P":{"properties":{"A":{"type":"boolean"}}}}}`, `/A must be a boolean, not a string`},
		"keys by pattern":                    {`{"patternProperties":{"^P$":{"type":"boolean"}}}`, `/P must be a boolean, not a reference to a secret`},
		"numbers of keys":                    {`{"maxProperties":2}`, `must have at most 2 keys`},
		"a referenced schema":                {`{"$defs":{"x":{"allOf":[{"not":{"const":"a"}},{"type":"boolean"}]}},"properties":{"P":{"$ref":"#/$defs/x"}}}`, `/P must be a boolean, not a reference to a secret`},
		"a recursive schema":                 {`{"$ref":"#/$defs/x","$defs":{"x":{"additionalProperties":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string"}]},"minProperties":1}}}`, ``},
		"dynamic references":                 {`{"$dynamicAnchor":"x","properties":{"P":{"$dynamicRef":"#x","type":"boolean"}}}`, `/P must be a boolean, not a reference to a secret`},
		"a referred condition":               {`{"$defs":{"x":{"properties":{"A":{"const":"x"}}}},"if":{"$ref":"#/$defs/x"},"then":{"required":["Q"]}}`, `/Q is required, and no config container has it`},
		"a referred negation":                {`{"$defs":{"x":{"properties":{"A":{"const":"x"}}}},"not":{"$ref":"#/$defs/x"}}`, `is of a kind that the schema rules out`},
		"unevaluated keys":                   {`{"properties":{"P":{"type":"string","minLength":8},"O":true},"unevaluatedProperties":false}`, `/A is not allowed`},
		"names of its key":                   {`{"propertyNames":{"enum":["A","O"]}}`, `/P is a key that must be one of "A","O"`},
		"values beside it":                   {`{"minProperties":1,"properties":{"A":{"type":"integer","enum":[1]},"O":{"properties":{"x":{"type":"string"}}}}}`, `/A must be an integer, not a string; /O/x must be a string, not a number`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			build := func() *fleetBuilder { return dev().container("c", nil, `{"A":"x","O":{"x":1}}`).secrets("P=vault:db") }
			equal(t, "violations", violationsOf(t, build(), test.schema), test.want)
			if isEmbeddable(test.schema) {
				equal(t, "violations as a part", violationsOf(t, build(), `{"allOf":[`+test.schema+`]}`), test.want)
			}
		})
	}
}

func TestReferenceIsCheckedBesideUnknownValues(t *testing.T) {
	t.Parallel()
	g := dev().container("c", nil, `{}`).secrets("P=vault:db").container("d", nil, "")
	equal(t, "violations", violationsOf(t, g, `{"properties":{"P":{"type":"integer"}}}`), `/P must be an integer, not a reference to a secret`)
	g = dev().container("c", nil, `{"P":"x"}`).container("d", nil, "")
	equal(
		t,
		"violations",
		violationsOf(t, g, `{"properties":{"P":{"format":"secret"}}}`),
		`/P must be a reference to a secret: give it in secrets of a config container, not in data`,
	)
	g = dev().container("c", nil, `{"P":"x"}`)
	equal(
		t,
		"without any reference",
		violationsOf(t, g, `{"properties":{"P":{"format":"secret"}}}`),
		`/P must be a reference to a secret: give it in secrets of a config container, not in data`,
	)
	g = dev().configMap("c", nil, `{"P":"911"}`)
	equal(
		t,
		"of a ConfigMap",
		violationsOf(t, g, `{"properties":{"P":{"format":"secret"}}}`),
		`/P must be a reference to a secret: give it in secrets of a config container, not in data`,
	)
}

func TestMissingSecretNamesOtherContainersWithIt(t *testing.T) {
	t.Parallel()
	g := dev().container("c", nil, `{}`).container("west", labels{"region": "west"}, `{}`).secrets("P=vault:db")
	equal(t, "violations", violationsOf(t, g, `{"required":["P"]}`),
		`/P is required, and no container that matches has it; config container "west" has it, but asks for region=west`)
	g = dev().container("c", nil, `{}`).secrets("P=vault:db").container("d", nil, `{}`).priority("1").secrets("P=null")
	equal(t, "violations", violationsOf(t, g, `{"required":["P"]}`), `/P is required, but config container "d" removes it`)
}

// TestReferenceIsRefusedOnlyIfNoTextFits checks random schemas. A reference may be refused only if the validator refuses every
// text in its place.
func TestReferenceIsRefusedOnlyIfNoTextFits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(24, 24))
	texts, refused, accepted := []string{"", "a", "b", "ba", "10.0.0.1"}, 0, 0
	rounds := acceptancetest.Count(80, 2_000)
	for range rounds {
		document := map[string]any{}
		for range 1 + random.IntN(2) {
			maps.Copy(document, randomSchema(random, 3, true))
		}
		text := canonical(t, document)
		found := violationsOf(t, dev().container("c", nil, `{"A":"a"}`).secrets("P=vault:p", "Q=vault:q"), text)
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat = true
		if err := compiler.AddResource("schema:///schema.json", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		plain := compiler.MustCompile("schema:///schema.json")
		fits := false
		for _, p := range texts {
			for _, q := range texts {
				fits = fits || plain.Validate(map[string]any{"A": "a", "P": p, "Q": q}) == nil
			}
		}
		if fits && found != "" {
			t.Fatalf("%s\nrefuses references: %s", text, found)
		}
		if found == "" {
			accepted++
		} else {
			refused++
		}
	}
	if refused < rounds/10 || accepted < rounds/10 {
		t.Errorf("%d refused, %d accepted, want at least %d of each", refused, accepted, rounds/10)
	}
}

// randomSchema returns a schema of all values together, or of one value.
func randomSchema(random *rand.Rand, depth int, whole bool) map[string]any {
	pick := func(values ...any) any { return values[random.IntN(len(values))] }
	next := func() any { return randomSchema(random, depth-1, whole) }
	if depth > 0 {
		switch random.IntN(7) {
		case 0:
			return map[string]any{"not": next()}
		case 1:
			return map[string]any{"anyOf": []any{next(), next()}}
		case 2:
			return map[string]any{"oneOf": []any{next(), next()}}
		case 3:
			return map[string]any{"allOf": []any{next(), next()}}
		case 4:
			return map[string]any{"if": next(), "then": next(), "else": next()}
		}
	}
	if whole {
		return pick(
			map[string]any{"properties": map[string]any{pick("A", "P", "Q").(string): randomSchema(random, 2, false)}},
			map[string]any{"additionalProperties": randomSchema(random, 2, false)},
			map[string]any{"required": []any{pick("P", "Z")}},
			map[string]any{"enum": []any{map[string]any{"A": "a", "P": "a", "Q": "b"}}},
			map[string]any{"properties": map[string]any{"P": true}, "unevaluatedProperties": randomSchema(random, 1, false)},
		).(map[string]any)
	}
	return pick(
		map[string]any{"pattern": pick("^a", "b$")}, map[string]any{"minLength": json.Number("2")}, map[string]any{"maxLength": json.Number("1")},
		map[string]any{"const": pick("a", "b", nil)}, map[string]any{"enum": []any{pick("a", "ba", true), json.Number("1")}},
		map[string]any{"type": pick("string", "integer")}, map[string]any{"format": "ipv4"},
	).(map[string]any)
}
