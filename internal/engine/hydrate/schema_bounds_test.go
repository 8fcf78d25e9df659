package hydrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// numbered repeats an element between two texts up to a size in bytes. Each % in an element becomes a unique name.
func numbered(bytes int, before, element, after string) string {
	var text strings.Builder
	text.WriteString(before)
	for i := 0; text.Len() < bytes-len(element)-len(after)-10; i++ {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strings.ReplaceAll(element, "%", fmt.Sprint("k", i)))
	}
	text.WriteString(after)
	return text.String()
}

func nested(open, text, closing string, depth int) string {
	return strings.Repeat(open, depth) + text + strings.Repeat(closing, depth)
}

// doubling returns a schema of parts that each refer twice to the next.
func doubling(parts int) string {
	var text strings.Builder
	fmt.Fprintf(&text, `{"$ref":"#/$defs/%d","$defs":{"0":{"type":"string"}`, parts)
	for i := 1; i <= parts; i++ {
		fmt.Fprintf(&text, `,"%d":{"allOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]}`, i, i-1, i-1)
	}
	return text.String() + "}}"
}

func TestHostileSchemaCostsLittleMemoryAndTime(t *testing.T) {
	const small, large = 50_000, 1<<20 - 1
	size := acceptancetest.Count(250_000, large)
	const parts, memory = "has more than 4000 objects and booleans, the limit of a schema", "is too large: it would take more than 60 MiB of memory to compile"
	for schema, want := range map[string]string{
		numbered(size, `{"properties":{`, `"%":true`, `}}`):                                             parts,
		numbered(size, `{"allOf":[`, `{}`, `]}`):                                                        parts,
		numbered(size, `{"$defs":{"a":{}},"allOf":[`, `{"$ref":"#/$defs/a"}`, `]}`):                     parts,
		numbered(size, `{"$defs":{`, `"%":{"$dynamicAnchor":"%"},"r%":{"$dynamicRef":"#%"}`, `}}`):      parts,
		numbered(size, `{"$defs":{`, `"%":{"$id":"%"},"r%":{"$ref":"%"}`, `}}`):                         parts,
		numbered(size, `{"default":[`, `{"%":0}`, `]}`):                                                 parts,
		numbered(large, `{"const":[`, `0`, `]}`):                                                        memory,
		numbered(large, `{"enum":[`, `"%"`, `]}`):                                                       memory,
		numbered(large, `{"$schema":"http://json-schema.org/draft-04/schema#","enum":[`, `1e999`, `]}`): memory,
		numbered(large, `{"required":[`, `"%"`, `]}`):                                                   memory,
		numbered(large, `{"required":[`, `0`, `]}`):                                                     memory,
		numbered(large, `{"dependentRequired":{"a":[`, `"%"`, `]}}`):                                    memory,
		numbered(large, `{"properties":{`, `"%":1`, `}}`):                                               memory,
		numbered(large, `{"type":[`, `"%"`, `]}`):                                                       memory,
		numbered(large, `{"allOf":[`, `{"pattern":"a{1000}"}`, `]}`):                                    memory,
		numbered(large, `{"patternProperties":{`, `"%":{}`, `}}`):                                       memory,
		numbered(large, `{"allOf":[`, `{"type":1,"minimum":"","maximum":"","pattern":0}`, `]}`):         memory,
		numbered(large, `{"allOf":[`, `{"minLength":-1,"maxItems":1.5,"multipleOf":0}`, `]}`):           memory,
		`{"pattern":"` + strings.Repeat(`\\pL`, 200_000) + `"}`:                                         memory,
		`{"pattern":"` + strings.Repeat(`a`, 1_000_000) + `"}`:                                          memory,
		`{"pattern":"(a{100}){900}"}`:                                                                   "is not a JSON Schema: at /pattern",
		`{"pattern":"(a{10}b{10}){49}(c{20}){49}(d{900}){1}(e{90}){11}"}`:                               "",
		nested(`{"properties":{"a":`, "{}", "}}", 450):                                                  "",
		nested(`{"properties":{"`+strings.Repeat("k", 5_000)+`":`, "{}", "}}", 100):                     memory,
		nested(`{"properties":{"`+strings.Repeat("ü", 500)+`":`, "{}", "}}", 100):                       memory,
		numbered(large, `{"properties":{`, `"%":`+nested(`{"not":`, "{}", "}", 900), `}}`):              memory,
		nested(`{"not":`, "{}", "}", 2_000):                                                             "is not JSON: nested deeper than 1000 levels",
		doubling(40):                                                                                    "refers to itself in more than 100000 ways for one value",
		`{"properties":{"a":` + doubling(40)[:12] + `x"}}}`:                                             "is not a JSON Schema",
		`{"multipleOf":1e1000000000}`:                                                                   "holds a number that is too large or too small to be checked",
		`{"enum":[-1e-1000000000]}`:                                                                     "holds a number that is too large or too small to be checked",
		numbered(small, `{"allOf":[`, `{"$ref":"::","$id":"::","$anchor":" "}`, `]}`):                   "is not a JSON Schema",
		numbered(small, `{"allOf":[`, `{"pattern":"("}`, `]}`):                                          "is not a JSON Schema: at /allOf/0/pattern",
		numbered(200_000, `{"properties":{`, `"key-%":{"type":"string","description":"`+strings.Repeat("what it is ", 9)+`","maxLength":63}`, `}}`): "",
		numbered(small, `{"enum":[`, `"%"`, `]}`):                "",
		numbered(small, `{"default":{"a":[`, `"%"`, `]}}`):       "",
		`{"description":"` + strings.Repeat("x", 900_000) + `"}`: "",
		doubling(12): "",
	} {
		var err error
		fleettest.Bounded(t, schema, func() { err = hydrate.CheckSchema(schema) })
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%.80q: %v, want %q", schema, err, want)
		}
	}
}

// Doubling references may be anywhere in a schema.
func TestReferencesOfEveryPartOfASchemaAreBounded(t *testing.T) {
	_, definitions, _ := strings.Cut(doubling(40), ",")
	for _, place := range []string{
		`"properties":{"a":%s}`, `"patternProperties":{"a":%s}`, `"additionalProperties":%s`, `"items":%s`, `"prefixItems":[%s]`, `"contains":%s`,
		`"not":%s`, `"if":%s`, `"if":true,"then":%s`, `"if":true,"else":%s`, `"anyOf":[%s]`, `"oneOf":[%s]`, `"dependentSchemas":{"a":%s}`, `"propertyNames":%s`,
		`"unevaluatedProperties":%s`, `"unevaluatedItems":%s`, `"$schema":"http://json-schema.org/draft-07/schema","dependencies":{"a":%s}`,
		`"$schema":"http://json-schema.org/draft-07/schema","items":[%s]`, `"$schema":"http://json-schema.org/draft-07/schema","items":[true],"additionalItems":%s`,
	} {
		schema := "{" + fmt.Sprintf(place, `{"$ref":"#/$defs/40"}`) + "," + definitions
		if err := hydrate.CheckSchema(schema); err == nil || !strings.Contains(err.Error(), "ways for one value") {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// The format "regex" compiles the value.
func TestHostilePatternAmongValuesIsInvalid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`a{1,3}`: "", `(`: `/A must be of the format "regex"`, strings.Repeat(`\pL`, 10_000): `/A must be of the format "regex"`,
	} {
		data := canonical(t, map[string]any{"A": text, "B": true})
		equal(t, text, violationsOf(t, dev().container("c", nil, data), `{"properties":{"A":{"format":"regex"},"B":{"format":"regex"}}}`), want)
	}
}
