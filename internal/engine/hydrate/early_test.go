package hydrate_test

import "testing"

func TestContainersAreCheckedAloneBeforeAnythingIsComposed(t *testing.T) {
	t.Parallel()
	port := `{"properties":{"PORT":{"type":"integer"},"db":{"type":"object","required":["host"],"properties":{"port":{"type":"integer"}}}}}`
	small := labels{"size": "small"}
	wrong := `config container "a": /PORT must be an integer, not a string (config schema "s", assignment "drone/hello-test")`
	overridden := `config container "a": /PORT must be an integer, not a string, although other containers override it everywhere (config schema "s", assignment "drone/hello-test")`
	for name, test := range map[string]struct {
		given              *given
		findings, warnings string
	}{
		"what remains is said once": {
			dev().container("a", nil, `{"PORT":"x"}`), wrong, ""},
		"unknown values do not keep it back": {
			dev().container("a", nil, `{"PORT":"x"}`).container("b", small, ""), wrong, ""},
		"what unknown values may complete is not missing": {
			dev().container("a", nil, `{"db":{"name":"n"}}`).container("b", small, ""), "", ""},
		"but what is there is checked": {
			dev().container("a", nil, `{"db":{"port":"x"}}`).container("b", small, ""),
			`config container "a": /db/port must be an integer, not a string (config schema "s", assignment "drone/hello-test")`, ""},
		"what is overridden everywhere is a warning": {
			dev().container("a", nil, `{"PORT":"x"}`).container("b", small, `{"PORT":1}`), "", overridden},
		"by a known container beside an unknown one too": {
			dev().container("a", nil, `{"PORT":"x"}`).container("b", small, `{"PORT":1}`).container("c", small, ""), "", overridden},
		"another type than an object": {
			dev().container("a", nil, `{"PORT":{"x":1}}`).container("b", small, ""),
			`config container "a": /PORT must be an integer, not an object (config schema "s", assignment "drone/hello-test")`, ""},
		"a removal is no value": {
			dev().container("a", nil, `{"PORT":null,"db":{"port":null}}`).container("b", small, ""), "", ""},
		"text of a ConfigMap may be a number": {
			dev().configMap("a", nil, `{"PORT":"80"}`).container("b", small, ""), "", ""},
		"containers that the schema does not meet are left alone": {
			dev().container("a", labels{"size": "large"}, `{"PORT":"x"}`), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.given.schema("s", nil, port).assign("drone", "hello", small, nil).hydrate(t)
			equal(t, "findings", report(result.Findings), test.findings)
			equal(t, "warnings", report(result.Warnings), test.warnings)
		})
	}
}

func TestPropertiesThatAreReferredToAreCheckedAlone(t *testing.T) {
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
		report(result.Findings),
		`config container "a": /A must be an integer, not a string (config schema "s", assignment "drone/hello-test")
config container "a": /B must have at most 0 characters (config schema "s", assignment "drone/hello-test")
config container "a": /C/A must be an integer, not a string (config schema "s", assignment "drone/hello-test")`,
	)
}
