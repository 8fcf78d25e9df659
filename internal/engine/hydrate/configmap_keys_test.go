package hydrate_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestInvalidKeysOfConfigMapsAreFindings(t *testing.T) {
	t.Parallel()
	const rule = ` is not a key that a ConfigMap can have: letters, digits, "-", "_" and ".", at most 253 characters, not "." nor starting with ".."`
	west := labels{"region": "west"}
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    string
	}{
		"valid keys":                        {dev().container("a", nil, `{"A.b-C_9":1,".a":1,"...":null}`), ""},
		"a space":                           {dev().container("a", nil, `{"my key":1}`), `config container "a": /my key` + rule + ` (assignment "drone/hello-test")`},
		"an empty key":                      {dev().container("a", nil, `{"":1}`), `config container "a": /` + rule + ` (assignment "drone/hello-test")`},
		"a dot":                             {dev().container("a", nil, `{".":1}`), `config container "a": /.` + rule + ` (assignment "drone/hello-test")`},
		"two dots first":                    {dev().container("a", nil, `{"..a":1}`), `config container "a": /..a` + rule + ` (assignment "drone/hello-test")`},
		"a slash":                           {dev().container("a", nil, `{"a/b":{}}`), `config container "a": /a~1b` + rule + ` (assignment "drone/hello-test")`},
		"a key of two containers":           {dev().container("a", nil, `{"a b":1}`).container("b", west, `{"a b":2}`), `config container "b": /a b` + rule + ` (assignment "drone/hello-test")`},
		"a removed key":                     {dev().container("a", nil, `{"a b":1}`).container("b", west, `{"a b":null}`), ""},
		"a key beside an unknown container": {dev().container("a", nil, `{"a b":1}`).container("b", west, ""), `config container "a": /a b` + rule + ` (assignment "drone/hello-test")`},
		"below a key":                       {dev().container("a", nil, `{"a":{"b c":1}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := test.builder.assign("drone", "hello", west, nil)
			g.assignments[0].Host.ClusterType.ConfigType = "configmap"
			equal(t, "findings", findingLines(g.hydrate(t).Findings), test.want)
		})
	}
	g := dev().container("a", nil, `{"`+strings.Repeat("x", 253)+`":1}`).container("b", nil, `{"`+strings.Repeat("x", 254)+`":1}`).
		assign("drone", "hello", west, nil).assign("large", "hello", west, nil).assign("small", "hello", west, nil)
	for i := range g.assignments {
		g.assignments[i].Host.ClusterType.ConfigType = "configmap"
	}
	found := g.hydrate(t).Findings
	if len(found) != 1 || found[0].Container != "b" || found[0].More != 2 {
		t.Errorf("findings %v, want one for the key of 254 characters, on three assignments", found)
	}
}

func TestKeysAreFreeWithoutAConfigMap(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fleetBuilder){
		"a file of JSON":      func(g *fleetBuilder) { g.assignments[0].Host.ClusterType.ConfigType = "json" },
		"a template of users": func(g *fleetBuilder) { g.fleet.Templates = []fleet.Template{{Name: "configmap", Type: "config"}} },
		"no ConfigMap at all": func(g *fleetBuilder) { g.assignments[0].Target.Target.Manifests.ConfigAs = fleet.ConfigAs{"values"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := dev().container("a", nil, `{"my key":1}`).assign("drone", "hello", nil, nil)
			g.assignments[0].Host.ClusterType.ConfigType = "configmap"
			change(g)
			equal(t, "findings", findingLines(g.hydrate(t).Findings), "")
		})
	}
}

func TestUnmatchedSchemasAreWarnings(t *testing.T) {
	t.Parallel()
	g := dev().
		schema("all", nil, `{}`).schema("west", labels{"region": "west", "workload": "hello"}, `{}`).
		schema("misspelt", labels{"region": "wets", "workload": "hello"}, `{}`).
		schema("nowhere", labels{"zone": "1", "workload": "bye"}, `{}`).
		schema("apart", labels{"region": "east", "size": "large"}, `{}`).
		assign("drone", "hello", labels{"region": "west", "size": "large"}, nil).
		assign("small", "hello", labels{"region": "east"}, nil)
	equal(t, "warnings", findingLines(g.hydrate(t).Warnings), `config schema "apart": matches no assignment: none has all of its labels
config schema "misspelt": matches no assignment: none of their hosts and deployment targets has label region=wets
config schema "nowhere": matches no assignment: none of their hosts and deployment targets has label workload=bye or zone=1`)
	g.assignments = nil
	equal(t, "warnings without assignments", findingLines(g.hydrate(t).Warnings), "")
}
