package hydrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// violationsOf hydrates the fleet with one schema. It returns the violations without the names of container, schema and assignment.
func violationsOf(t *testing.T, g *fleetBuilder, schema string) string {
	t.Helper()
	found := findingLines(g.schema("s", nil, schema).assign("drone", "hello", nil, nil).hydrate(t).Findings)
	return strings.NewReplacer(`config container "c": `, "", ` (config schema "s", assignment "drone/hello-test")`, "",
		`config schema "s": `, "", ` (assignment "drone/hello-test")`, "", "\n", "; ").Replace(found)
}

func TestValuesAreCheckedAgainstSchemas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ data, schema, want string }{
		"fits":                {`{"A":1}`, `{"properties":{"A":{"type":"integer"}}}`, ``},
		"another type":        {`{"A":"x"}`, `{"properties":{"A":{"type":"integer"}}}`, `/A must be an integer, not a string`},
		"one of types":        {`{"A":{}}`, `{"properties":{"A":{"type":["integer","string","null"]}}}`, `/A must be an integer, a string or null, not an object`},
		"a text for a number": {`{"A":"911"}`, `{"properties":{"A":{"type":"integer"}}}`, `/A must be an integer, not a string`},
		"a number for a text": {`{"A":911}`, `{"properties":{"A":{"type":"string"}}}`, `/A must be a string, not a number`},
		"nested":              {`{"A":{"b/c":[{"d":1}]}}`, `{"properties":{"A":{"properties":{"b/c":{"items":{"properties":{"d":{"type":"boolean"}}}}}}}}`, `/A/b~1c/0/d must be a boolean, not a number`},
		"percent signs":       {`{"A":{"50%/ü":1}}`, `{"properties":{"A":{"properties":{"50%/ü":{"type":"boolean"}}}}}`, `/A/50%~1ü must be a boolean, not a number`},
		"enum":                {`{"A":"x"}`, `{"properties":{"A":{"enum":["a",1,null]}}}`, `/A must be one of "a",1,null`},
		"const":               {`{"A":"x"}`, `{"properties":{"A":{"const":{"b":1}}}}`, `/A must be {"b":1}`},
		"null const":          {`{"A":"x"}`, `{"properties":{"A":{"const":null}}}`, `/A must be null`},
		"pattern":             {`{"A":"x"}`, `{"properties":{"A":{"pattern":"^a+$"}}}`, `/A must match the pattern "^a+$"`},
		"lengths":             {`{"A":"x","B":"xyz"}`, `{"properties":{"A":{"minLength":2},"B":{"maxLength":2}}}`, `/A must have at least 2 characters; /B must have at most 2 characters`},
		"bounds": {`{"A":1,"B":1,"C":1,"D":1,"E":1}`,
			`{"properties":{"A":{"minimum":2},"B":{"maximum":0.5},"C":{"exclusiveMinimum":1},"D":{"exclusiveMaximum":1},"E":{"multipleOf":2}}}`,
			`/A must be at least 2; /B must be at most 0.5; /C must be more than 1; /D must be less than 1; /E must be a multiple of 2`},
		"numbers of members":          {`{"A":[],"B":{"x":1}}`, `{"properties":{"A":{"minItems":1},"B":{"maxProperties":0}}}`, `/A must have at least 1 elements; /B must have at most 0 keys`},
		"required elements":           {`{"A":[1,2]}`, `{"properties":{"A":{"contains":{"const":3}}}}`, `/A has too few elements that fit "contains"`},
		"unique elements":             {`{"A":[1,1.0]}`, `{"properties":{"A":{"uniqueItems":true}}}`, `/A must not have equal elements`},
		"formats are asserted":        {`{"A":"not a uri","B":"10.0.0.256"}`, `{"properties":{"A":{"format":"uri"},"B":{"format":"ipv4"}}}`, `/A must be of the format "uri"; /B must be of the format "ipv4"`},
		"forbidden keys":              {`{"A":1,"B":2,"C":3,"x-d":4}`, `{"properties":{"A":true},"additionalProperties":false}`, `/B is not an allowed key; /C is not an allowed key; /x-d is not an allowed key`},
		"keys allowed by a pattern":   {`{"A":1,"B":2,"x-d":4}`, `{"properties":{"A":true},"patternProperties":{"^x-":true},"additionalProperties":false}`, `/B is not an allowed key`},
		"nested keys":                 {`{"A":{"x":1,"y":1}}`, `{"properties":{"A":{"properties":{"x":true},"additionalProperties":false}}}`, `/A/y is not an allowed key`},
		"schemas of other keys":       {`{"A":1,"B":2}`, `{"properties":{"A":true},"additionalProperties":{"type":"string"}}`, `/B must be a string, not a number`},
		"the false schema":            {`{"required":1}`, `{"properties":{"required":false}}`, `/required is not allowed`},
		"names of keys":               {`{"A":1,"b":1}`, `{"propertyNames":{"pattern":"^[A-Z]+$"}}`, `/b is a key that must match the pattern "^[A-Z]+$"`},
		"dependent keys":              {`{"A":1}`, `{"dependentRequired":{"A":["B"]}}`, `/B is required where A is, and no config container has it`},
		"references":                  {`{"A":1}`, `{"$defs":{"text":{"type":"string"}},"properties":{"A":{"$ref":"#/$defs/text"}}}`, `/A must be a string, not a number`},
		"references at the root":      {`{"A":1}`, `{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"A":{"type":"string"}}}}}`, `/A must be a string, not a number`},
		"recursion":                   {`{"A":{"A":{"A":1}}}`, `{"properties":{"A":{"type":"object","allOf":[{"$ref":"#"}]}}}`, `/A/A/A must be an object, not a number`},
		"identifiers":                 {`{"A":1}`, `{"$id":"https://example.com/root.json","properties":{"A":{"$ref":"/text.json"}},"$defs":{"t":{"$id":"/text.json","type":"string"}}}`, `/A must be a string, not a number`},
		"all of":                      {`{"A":1}`, `{"allOf":[{"properties":{"A":{"type":"string"}}},{"properties":{"A":{"minimum":2}}}]}`, `/A must be a string, not a number; /A must be at least 2`},
		"any of":                      {`{"A":1}`, `{"properties":{"A":{"anyOf":[{"type":"string"},{"properties":{},"type":"object"},{"minimum":2}]}}}`, `/A fits none of the alternatives: must be a string, not a number; must be an object, not a number; must be at least 2`},
		"one of several":              {`{"A":1}`, `{"properties":{"A":{"oneOf":[true,{"type":"number"}]}}}`, `/A fits more than one of the alternatives, and must fit exactly one`},
		"not":                         {`{"A":1}`, `{"properties":{"A":{"not":{"type":"number"}}}}`, `/A is of a kind that the schema rules out`},
		"conditions":                  {`{"A":1,"B":"x"}`, `{"if":{"required":["A"]},"then":{"properties":{"B":{"type":"number"}}}}`, `/B must be a number, not a string`},
		"a property named anyOf":      {`{"anyOf":{"x":1,"y":1}}`, `{"properties":{"anyOf":{"properties":{"x":{"type":"string"},"y":{"type":"string"}}}}}`, `/anyOf/x must be a string, not a number; /anyOf/y must be a string, not a number`},
		"nothing allowed":             {`{"A":1}`, `false`, `is not allowed`},
		"everything allowed":          {`{"A":1}`, `true`, ``},
		"a schema of lists":           {`{"A":1}`, `{"type":"array"}`, `must be a list, not an object`},
		"an extreme number":           {`{"A":1e5000}`, `{"properties":{"A":{"multipleOf":2}}}`, `/A holds a number that is too large or too small to be checked`},
		"an extreme number, whole":    {`{"A":{"x":1e-5000}}`, `{"not":{}}`, `/A holds a number that is too large or too small to be checked`},
		"an unchecked extreme number": {`{"A":1e5000}`, `{"properties":{"B":{"multipleOf":2}}}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "violations", violationsOf(t, dev().container("c", nil, test.data), test.schema), test.want)
		})
	}
}

func TestTextOfConfigMapsMayHaveTheTypeOfASchema(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, schema, want string }{
		"an integer":                     {"911", `{"type":"integer"}`, ``},
		"a negative number":              {"-1.50", `{"type":"number"}`, ``},
		"a boolean":                      {"true", `{"type":"boolean"}`, ``},
		"one of types":                   {"911", `{"type":["null","integer"]}`, ``},
		"a text for a string":            {"911", `{"type":"string"}`, ``},
		"a text for a string or integer": {"911", `{"type":["string","integer"],"maxLength":3}`, ``},
		"a number in an enum":            {"3", `{"enum":[1,2,3]}`, ``},
		"an alternative":                 {"911", `{"anyOf":[{"type":"boolean"},{"type":"integer"}]}`, ``},
		"in single quotes":               {"'911'", `{"type":"integer"}`, ``},
		"leading zeros":                  {"0123", `{"type":"integer"}`, `/A must be an integer, not a string`},
		"a plus sign":                    {"+1", `{"type":"integer"}`, `/A must be an integer, not a string`},
		"hexadecimal":                    {"0x10", `{"type":"integer"}`, `/A must be an integer, not a string`},
		"other YAML":                     {"yes", `{"type":"boolean"}`, `/A must be a boolean, not a string`},
		"white space":                    {" 1 ", `{"type":"integer"}`, `/A must be an integer, not a string`},
		"empty":                          {"", `{"type":"integer"}`, `/A must be an integer, not a string`},
		"an extreme number":              {"1e999999999", `{"type":"number"}`, `/A must be a number, not a string`},
		"a fraction":                     {"1.5", `{"type":"integer"}`, `/A must be an integer, not a string`},
		"a number out of bounds":         {"911", `{"type":"integer","maximum":100}`, `/A must be at most 100`},
		"a violated pattern":             {"911", `{"type":"string","pattern":"^a"}`, `/A must match the pattern "^a"`},
		"a text in a list":               {`["911"]`, `{"items":{"type":"integer"}}`, `/A/0 must be an integer, not a string`},
	} {
		for _, shape := range []string{`{"properties":{"A":%s}}`, `{"allOf":[{"properties":{"A":%s}}]}`} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				data := canonical(t, map[string]any{"A": test.text})
				equal(t, "violations", violationsOf(t, dev().configMap("c", nil, data), fmt.Sprintf(shape, test.schema)), test.want)
			})
		}
	}
}

func TestTextsOfConfigMapsAreConvertedSeparately(t *testing.T) {
	t.Parallel()
	g := dev().configMap("c", nil, `{"A":"1","B":"0123","C":"true"}`)
	equal(t, "violations", violationsOf(t, g,
		`{"allOf":[{"properties":{"A":{"type":"integer"},"B":{"type":"integer"},"C":{"type":"string","minLength":5}}}]}`),
		`/B must be an integer, not a string; /C must have at least 5 characters`)
	equal(t, "values", g.hydrate(t).All[0].JSON, `{"A":"1","B":"0123","C":"true"}`)
}

func TestMissingKeyNamesOtherContainersWithIt(t *testing.T) {
	t.Parallel()
	need := `{"required":["DATABASE_URL"]}`
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    string
	}{
		"no container has it": {dev().container("c", nil, `{"A":1}`), `/DATABASE_URL is required, and no config container has it`},
		"others have it": {
			dev().container("west", labels{"region": "west"}, `{"DATABASE_URL":"w"}`).
				container("small", labels{"size": "small", "edge": "true", "workload": "other"}, `{"DATABASE_URL":"s"}`),
			`/DATABASE_URL is required, and no container that matches has it; config container "west" has it, but asks for region=west; ` +
				`config container "small" has it, but asks for size=small, workload=other`},
		"many have it": {
			dev().container("1", labels{"x": "1"}, `{"DATABASE_URL":1}`).container("2", labels{"x": "2"}, `{"DATABASE_URL":1}`).
				container("3", labels{"x": "3"}, `{"DATABASE_URL":1}`).container("4", labels{"x": "4"}, `{"DATABASE_URL":1}`).
				container("5", labels{"x": "5"}, `{"DATABASE_URL":1}`),
			`/DATABASE_URL is required, and no container that matches has it; config container "1" has it, but asks for x=1; ` +
				`config container "2" has it, but asks for x=2; config container "3" has it, but asks for x=3; 2 more have it, too`},
		"it was removed": {
			dev().container("a", nil, `{"DATABASE_URL":1}`).container("b", labels{"edge": "true"}, `{"DATABASE_URL":null}`),
			`/DATABASE_URL is required, but config container "b" removes it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.schema("s", nil, need).assign("drone", "hello", labels{"edge": "true"}, nil).hydrate(t)
			equal(t, "findings", findingLines(result.Findings), `config schema "s": `+test.want+` (assignment "drone/hello-test")`)
		})
	}
}

func TestMissingNestedKeyHasItsPointer(t *testing.T) {
	t.Parallel()
	g := dev().container("a", nil, `{"database":{"port":1}}`).container("b", labels{"region": "west"}, `{"database":{"host":"h"}}`)
	equal(t, "violations", violationsOf(t, g, `{"properties":{"database":{"required":["host","name"]}}}`),
		`/database/host is required, and no container that matches has it; config container "b" has it, but asks for region=west; `+
			`/database/name is required, and no config container has it`)
}

func TestViolationNamesTheContainerOfTheValue(t *testing.T) {
	t.Parallel()
	result := dev().
		container("all", nil, `{"PORT":"x","database":{"port":"x","name":"n"}}`).
		container("west", labels{"region": "west"}, `{"database":{"port":"y"}}`).
		schema("net", nil, `{"properties":{"PORT":{"type":"integer"},"database":{"properties":{"port":{"type":"integer"}}}}}`).
		assign("east", "hello", nil, nil).
		assign("west", "hello", labels{"region": "west"}, nil).
		assign("west-2", "hello", labels{"region": "west"}, nil).
		hydrate(t)
	equal(t, "findings", findingLines(result.Findings), strings.Join([]string{
		`config container "all": /PORT must be an integer, not a string (config schema "net", assignment "east/hello-test" and 2 more)`,
		`config container "all": /database/port must be an integer, not a string (config schema "net", assignment "east/hello-test")`,
		`config container "west": /database/port must be an integer, not a string (config schema "net", assignment "west/hello-test" and 1 more)`,
	}, "\n"))
}

func TestSchemasMatchAssignmentsLikeContainers(t *testing.T) {
	t.Parallel()
	never := `{"required":["NEVER"]}`
	result := dev().
		schema("everywhere", nil, `{"type":"object"}`).
		schema("here", labels{"region": "west", "workload": "hello"}, never).
		schema("there", labels{"region": "east"}, never).
		assign("drone", "hello", labels{"region": "west"}, nil).
		assign("drone", "other", labels{"region": "west"}, nil).
		assign("large", "own", nil, nil, never).
		assign("large", "two", nil, nil, `true`, never).
		hydrate(t)
	equal(t, "findings", findingLines(result.Findings), strings.Join([]string{
		`config schema "here": /NEVER is required, and no config container has it (assignment "drone/hello-test")`,
		`deployment target "own-test"'s own schema: /NEVER is required, and no config container has it (assignment "large/own-test")`,
		`deployment target "two-test"'s own schema 2: /NEVER is required, and no config container has it (assignment "large/two-test")`,
	}, "\n"))
}

func TestInvalidSchemaIsAnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ schema, want string }{
		"not JSON":             {`{`, `is not JSON: unexpected EOF after offset 1`},
		"not a schema":         {`[]`, `is not a JSON Schema: expected object or boolean, but got array`},
		"a bad keyword":        {`{"properties":{"A":{"type":"text"}}}`, `is not a JSON Schema: at /properties/A/type: value must be one of "array", "boolean", "integer", "null", "number", "object", "string"`},
		"a bad pattern":        {`{"pattern":"("}`, `is not a JSON Schema: at /pattern: '(' is not valid 'regex'`},
		"an unknown draft":     {`{"$schema":"https://example.com/draft"}`, `its $schema "https://example.com/draft" is none of the drafts 4, 6, 7, 2019-09 and 2020-12`},
		"a draft as a number":  {`{"$schema":7}`, `its $schema "" is none of the drafts 4, 6, 7, 2019-09 and 2020-12`},
		"a remote reference":   {`{"properties":{"A":{"$ref":"https://example.com/a.json#/x"}}}`, `refers to "https://example.com/a.json", which is outside of it and is not fetched: put that schema under $defs`},
		"a file":               {`{"$ref":"file:///etc/passwd"}`, `refers to "file:///etc/passwd", which is outside of it and is not fetched: put that schema under $defs`},
		"a relative reference": {`{"$ref":"other.json"}`, `refers to "other.json", which is outside of it and is not fetched: put that schema under $defs`},
		"a missing part":       {`{"$ref":"#/$defs/x"}`, `is not a JSON Schema: #/$defs/x not found`},
		"an empty query":       {`{"$id":"?"}`, `its $id "?" is not a URL in its normal form`},
		"an id of draft 4":     {`{"$schema":"http://json-schema.org/draft-04/schema#","id":"?#a"}`, `its id "?#a" is not a URL in its normal form`},
		"a detour":             {`{"allOf":[{"$id":"schema:///x/../schema.json","$ref":"#"}]}`, `its $id "schema:///x/../schema.json" is not a URL in its normal form`},
		"a circle":             {`{"$ref":"#"}`, `is not a JSON Schema: a $ref leads back to itself`},
		"an extreme number":    {`{"minimum":1e999999999}`, `holds a number that is too large or too small to be checked`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := dev().schema("s", labels{"no": "where"}, test.schema).assign("drone", "hello", nil, nil).hydrate(t)
			equal(t, "findings", findingLines(result.Findings), `config schema "s": `+test.want)
			result = dev().assign("drone", "hello", nil, nil, test.schema).hydrate(t)
			equal(t, "findings", findingLines(result.Findings), `deployment target "hello-test"'s own schema: `+test.want)
		})
	}
}

func TestSchemasOfAllDrafts(t *testing.T) {
	t.Parallel()
	for draft, test := range map[string]struct{ body, want string }{
		"http://json-schema.org/draft-04/schema#":      {`"properties":{"A":{"minimum":1,"exclusiveMinimum":true}}`, `/A must be more than 1`},
		"http://json-schema.org/draft-06/schema#":      {`"properties":{"A":{"exclusiveMinimum":1}}`, `/A must be more than 1`},
		"http://json-schema.org/draft-07/schema":       {`"if":{"required":["A"]},"then":{"required":["B"]}`, `/B is required, and no config container has it`},
		"https://json-schema.org/draft/2019-09/schema": {`"dependentSchemas":{"A":{"required":["B"]}},"unevaluatedProperties":true`, `/B is required, and no config container has it`},
		"https://json-schema.org/draft/2020-12/schema": {`"properties":{"L":{"prefixItems":[{"type":"string"}]}}`, `/L/0 must be a string, not a number`},
	} {
		t.Run(draft, func(t *testing.T) {
			t.Parallel()
			g := dev().container("c", nil, `{"A":1,"L":[1]}`)
			equal(t, "violations", violationsOf(t, g, fmt.Sprintf(`{"$schema":%q,%s}`, draft, test.body)), test.want)
		})
	}
}

// A value may be a secret.
func TestFindingsNeverHoldValues(t *testing.T) {
	t.Parallel()
	result := dev().hydration(fleet.Hydration{}).
		container("c", nil, `{"A":"hunter2","B":31337,"C":["hunter2","hunter2"],"D":{"hunter2":"hunter2"}}`).
		container("d", nil, `{"A":"hunter22"}`).
		schema("s", nil, `{"properties":{"A":{"format":"uri","pattern":"^x","maxLength":1,"enum":["a"],"const":"b","not":{"type":"string"}},
			"B":{"minimum":99999,"multipleOf":10,"maximum":1},"C":{"uniqueItems":true,"contains":{"const":1}},
			"D":{"additionalProperties":{"oneOf":[{"type":"number"},{"pattern":"z"}]}}}}`).
		assign("drone", "hello", nil, nil).
		hydrate(t)
	if len(result.Findings) < 10 {
		t.Errorf("%d findings, want at least 10", len(result.Findings))
	}
	for _, finding := range result.Findings {
		// The key /D/hunter2 is not a value.
		if text := strings.ReplaceAll(finding.String(), "/D/hunter2", ""); strings.Contains(text, "hunter2") || strings.Contains(text, "31337") {
			t.Errorf("a finding reveals a value: %s", text)
		}
	}
}
