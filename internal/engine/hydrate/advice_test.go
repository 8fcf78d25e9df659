package hydrate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
)

// adviceLines returns the advice for the first assignment, one line for each key.
func adviceLines(result *hydrate.Snapshots, g *fleetBuilder) string {
	advice := result.Advisor().ForAssignment(0, g.assignments[0])
	var lines []string
	for _, pointer := range slices.Sorted(maps.Keys(advice.Asked)) {
		asked := advice.Asked[pointer]
		lines = append(lines, fmt.Sprintf("%s: %s; from %s", pointer, strings.Join(asked.Schemas, ", "), strings.Join(asked.Containers, ", ")))
	}
	for _, pointer := range slices.Sorted(maps.Keys(advice.Missing)) {
		lines = append(lines, pointer+" is missing: "+advice.Missing[pointer])
	}
	for _, pointer := range advice.Unasked {
		lines = append(lines, pointer+" is not asked for")
	}
	return strings.Join(lines, "\n")
}

func TestAdviceListsKeysOfSchemasAndTheirContainers(t *testing.T) {
	t.Parallel()
	east := fleet.Labels{"region": "east"}
	for name, test := range map[string]struct {
		schemas []string
		want    string
	}{
		"no schema": {nil, ""},
		"a schema without keys": {[]string{`{"type":"object"}`}, `
/DB/host is not asked for
/DB/port is not asked for
/LEVEL is not asked for
/TAGS/0 is not asked for`},
		"properties": {[]string{`{"properties":{"LEVEL":{"type":"string"},"DB":{"properties":{"host":true}},"TAGS":{"items":{"type":"string"}},"COLOUR":{}}}`}, `
/COLOUR: config schema "0"; from 
/DB: config schema "0"; from all, east
/DB/host: config schema "0"; from all
/LEVEL: config schema "0"; from east
/TAGS: config schema "0"; from all
/DB/port is not asked for`},
		"required": {[]string{`{"required":["LEVEL","TOKEN","SITE"],"properties":{"DB":{"required":["name"]}}}`}, `
/DB: config schema "0"; from all, east
/DB/name: config schema "0"; from 
/LEVEL: config schema "0"; from east
/SITE: config schema "0"; from 
/TOKEN: config schema "0"; from 
/DB/name is missing: config schema "0": it is required, and no config container has it
/SITE is missing: config schema "0": it is required, and no container that matches has it; config container "west" has it, but asks for region=west
/TOKEN is missing: config schema "0": it is required, and no config container has it
/DB/host is not asked for
/DB/port is not asked for
/TAGS/0 is not asked for`},
		"two schemas": {[]string{`{"required":["LEVEL"]}`, `{"properties":{"LEVEL":{}},"patternProperties":{"^T":{}}}`}, `
/LEVEL: config schema "0", config schema "1"; from east`},
		"conditions and references": {[]string{`{"$ref":"#/$defs/a","anyOf":[{"required":["LEVEL"]},{"required":["COLOUR"]}],"not":{"required":["NEVER"]},
			"$defs":{"a":{"properties":{"DB":{"$ref":"#/$defs/b"}}},"b":{"properties":{"port":{},"DB":{"$ref":"#/$defs/b"}}}}}`}, `
/COLOUR: config schema "0"; from 
/DB: config schema "0"; from all, east
/DB/DB: config schema "0"; from 
/DB/port: config schema "0"; from east
/LEVEL: config schema "0"; from east
/DB/host is not asked for
/TAGS/0 is not asked for`},
		"required beside another key": {[]string{`{"dependentRequired":{"LEVEL":["COLOUR"]}}`}, `
/COLOUR: config schema "0"; from 
/COLOUR is missing: config schema "0": it is required where LEVEL is, and no config container has it
/DB/host is not asked for
/DB/port is not asked for
/LEVEL is not asked for
/TAGS/0 is not asked for`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := dev().container("all", nil, `{"LEVEL":"info","DB":{"host":"h","port":1},"TAGS":["a"]}`).
				container("east", east, `{"LEVEL":"debug","DB":{"port":2}}`).
				container("west", fleet.Labels{"region": "west"}, `{"SITE":"w"}`).
				assign("drone", "hello", east, nil)
			for i, schema := range test.schemas {
				g.schema(fmt.Sprint(i), nil, schema)
			}
			equal(t, "advice", adviceLines(g.hydrate(t), g), strings.TrimPrefix(test.want, "\n"))
		})
	}
}

func TestAdviceOfADeploymentTargetsOwnSchema(t *testing.T) {
	t.Parallel()
	g := dev().container("all", nil, `{"LEVEL":"info"}`).assign("drone", "hello", nil, nil, `{"required":["LEVEL"]}`)
	equal(t, "advice", adviceLines(g.hydrate(t), g), `/LEVEL: deployment target "hello-test"'s own schema; from all`)
}

// An unknown value is neither missing nor unused.
func TestAdviceWithUnknownValues(t *testing.T) {
	t.Parallel()
	g := dev().container("all", nil, `{"LEVEL":"info"}`).container("later", nil, "").
		schema("s", nil, `{"required":["TOKEN"],"properties":{"LEVEL":{}}}`).assign("drone", "hello", nil, nil)
	equal(t, "advice", adviceLines(g.hydrate(t), g), "/LEVEL: config schema \"s\"; from all\n/TOKEN: config schema \"s\"; from ")
}

// The reason depends on the labels, so assignments with the same containers do not share it.
func TestAdviceGivesTheReasonOfEachAssignment(t *testing.T) {
	t.Parallel()
	g := dev().container("a", fleet.Labels{"site": "a", "tier": "1"}, `{"K":1}`).schema("s", nil, `{"required":["K"]}`).
		assign("one", "hello", fleet.Labels{"site": "a"}, nil).assign("two", "hello", fleet.Labels{"tier": "1"}, nil)
	advisor := g.hydrate(t).Advisor()
	for i, label := range []string{"tier=1", "site=a"} {
		reason := advisor.ForAssignment(i, g.assignments[i]).Missing["/K"]
		if !strings.HasSuffix(reason, "but asks for "+label) {
			t.Errorf("assignment %d: %s", i, reason)
		}
	}
}

// References may multiply the keys of a schema until they no longer fit into memory.
func TestAdviceIsBounded(t *testing.T) {
	t.Parallel()
	var definitions []string
	for i := range 30 {
		definitions = append(
			definitions,
			fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1),
		)
	}
	g := dev().container("all", nil, `{"a":{"b":1},"z":1}`).assign("drone", "hello", nil, nil).
		schema("s", nil, `{"$ref":"#/$defs/d0","$defs":{`+strings.Join(definitions, ",")+`,"d30":{}}}`)
	advice := g.hydrate(t).Advisor().ForAssignment(0, g.assignments[0])
	if len(advice.Asked) > 20_000 || len(advice.Asked) < 1000 {
		t.Errorf("advice lists %d keys, want 1,000 to 20,000", len(advice.Asked))
	}
	equal(t, "not asked for", advice.Unasked, []string{})
}
