package hydrate_test

import "testing"

func TestContainersAreCheckedBeforeComposition(t *testing.T) {
	t.Parallel()
	port := `{"properties":{"PORT":{"type":"integer"},"db":{"type":"object","required":["host"],"properties":{"port":{"type":"integer"}}}}}`
	small := labels{"size": "small"}
	wrong := `config container "a": /PORT must be an integer, not a string (config schema "s", assignment "drone/hello-test")`
	overridden := `config container "a": /PORT must be an integer, not a string, although other containers override it everywhere (config schema "s", assignment "drone/hello-test")`
	for name, test := range map[string]struct {
		builder            *fleetBuilder
		findings, warnings string
	}{
		"a wrong value": {
			dev().container("a", nil, `{"PORT":"x"}`), wrong, ""},
		"a wrong value beside an unknown container": {
			dev().container("a", nil, `{"PORT":"x"}`).container("b", small, ""), wrong, ""},
		"a key that an unknown container may add": {
			dev().container("a", nil, `{"db":{"name":"n"}}`).container("b", small, ""), "", ""},
		"a wrong value beside a key that may be added": {
			dev().container("a", nil, `{"db":{"port":"x"}}`).container("b", small, ""),
			`config container "a": /db/port must be an integer, not a string (config schema "s", assignment "drone/hello-test")`, ""},
		"a value overridden everywhere": {
			dev().container("a", nil, `{"PORT":"x"}`).container("b", small, `{"PORT":1}`), "", overridden},
		"a value overridden beside an unknown container": {
			dev().container("a", nil, `{"PORT":"x"}`).container("b", small, `{"PORT":1}`).container("c", small, ""), "", overridden},
		"an object for an integer": {
			dev().container("a", nil, `{"PORT":{"x":1}}`).container("b", small, ""),
			`config container "a": /PORT must be an integer, not an object (config schema "s", assignment "drone/hello-test")`, ""},
		"a removal": {
			dev().container("a", nil, `{"PORT":null,"db":{"port":null}}`).container("b", small, ""), "", ""},
		"a number in a ConfigMap": {
			dev().configMap("a", nil, `{"PORT":"80"}`).container("b", small, ""), "", ""},
		"a container with other labels than the schema": {
			dev().container("a", labels{"size": "large"}, `{"PORT":"x"}`), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.schema("s", nil, port).assign("drone", "hello", small, nil).hydrate(t)
			equal(t, "findings", findingLines(result.Findings), test.findings)
			equal(t, "warnings", findingLines(result.Warnings), test.warnings)
		})
	}
}

func TestReferencedPropertiesAreCheckedBeforeComposition(t *testing.T) {
	t.Parallel()
	result := dev().
		container("a", nil, `{"A":"x","B":"x","C":{"A":"x"}}`).container("b", labels{"size": "small"}, "").
		schema("s", nil, `{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"A":{"type":"integer"},"C":{"$ref":"#"}}}},
			"allOf":[{"properties":{"B":{"maxLength":0}}}],"anyOf":[{"properties":{"A":{"const":1}}}]}`).
		assign("drone", "hello", labels{"size": "small"}, nil).
		hydrate(t)
	equal(
		t,
		"findings",
		findingLines(result.Findings),
		`config container "a": /A must be an integer, not a string (config schema "s", assignment "drone/hello-test")
config container "a": /B must have at most 0 characters (config schema "s", assignment "drone/hello-test")
config container "a": /C/A must be an integer, not a string (config schema "s", assignment "drone/hello-test")`,
	)
}
