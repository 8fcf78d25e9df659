package hydrate_test

import (
	"encoding/json"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

type labels = fleet.Labels

func fleetNumber(text string) json.Number { return json.Number(text) }

func TestContainersReachMatchingAssignments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		labels    labels
		isReached bool
	}{
		"no labels":                            {nil, true},
		"a label of the host":                  {labels{"region": "west"}, true},
		"a label of the deployment target":     {labels{"purpose": "test"}, true},
		"one of each":                          {labels{"region": "west", "purpose": "test"}, true},
		"a common key with the target's value": {labels{"edge": "target"}, true},
		"a common key with the host's value":   {labels{"edge": "host"}, true},
		"another value":                        {labels{"region": "east"}, false},
		"an absent label":                      {labels{"region": "west", "size": "large"}, false},
		"an empty value":                       {labels{"size": ""}, false},
		"the environment":                      {labels{"environment": "dev"}, true},
		"another environment":                  {labels{"environment": "stage"}, false},
		"the cluster type":                     {labels{"cluster-type": "drone"}, true},
		"the workspace":                        {labels{"workspace": "kaizen"}, true},
		"the workload":                         {labels{"workload": "hello"}, true},
		"the deployment target's full name":    {labels{"deployment-target": "hello-test"}, true},
		"the deployment target's short name":   {labels{"deployment-target": "test"}, false},
		"a reserved key on the host":           {labels{"workload": "sneaky"}, false},
		"a reserved key on the target":         {labels{"cluster-type": "sneaky"}, false},
		"a cluster of the cluster type":        {labels{"cluster": "drone-1"}, false},
		"all kinds together": {labels{
			"region": "west", "purpose": "test", "cluster-type": "drone", "workload": "hello", "environment": "dev",
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := dev().container("one", test.labels, `{"A":1}`).assign("drone", "hello",
				labels{"region": "west", "edge": "host", "workload": "sneaky", "cluster": "drone-1"},
				labels{"purpose": "test", "edge": "target", "cluster-type": "sneaky"})
			result := g.hydrate(t)
			equal(t, "reaches", len(result.All[0].Containers()) == 1, test.isReached)
			equal(t, "idle", len(g.idle(t)) == 1, !test.isReached)
		})
	}
}

func TestClusterIsItsOwnHost(t *testing.T) {
	t.Parallel()
	result := dev().
		container("of the cluster", labels{"cluster": "drone-1"}, `{"A":1}`).
		container("of the type", labels{"cluster-type": "drone"}, `{"B":2}`).
		assign("drone", "hello", nil, nil).onCluster("drone-1").
		assign("drone", "hello", nil, nil).onCluster("drone-2").
		hydrate(t)
	equal(t, "drone-1", result.All[0].JSON, `{"A":1,"B":2}`)
	equal(t, "drone-2", result.All[1].JSON, `{"B":2}`)
}

func TestFluxLabelsOfConfigMapsAreIgnored(t *testing.T) {
	t.Parallel()
	marks := labels{
		"platform-config": "true", "kustomize.toolkit.fluxcd.io/name": "cp", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
	}
	result := dev().
		configMap("everywhere", marks, `{"A":"everywhere"}`).
		configMap("here", labels{"platform-config": "true", "region": "west"}, `{"A":"here"}`).
		container("not a ConfigMap", marks, `{"A":"never"}`).
		assign("drone", "hello", labels{"region": "west"}, nil).
		hydrate(t)
	equal(t, "values", result.All[0].JSON, `{"A":"here"}`)
	equal(t, "order", result.All[0].Containers(), []string{"everywhere", "here"})
}

func TestHigherRankedContainerWins(t *testing.T) {
	t.Parallel()
	west := labels{"region": "west"}
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    string
	}{
		"more labels win over fewer": {
			dev().container("a", labels{"region": "west", "edge": "true"}, `{"A":"two"}`).container("z", west, `{"A":"one"}`), "two"},
		"priority wins over labels": {
			dev().container("a", nil, `{"A":"high"}`).priority("1").container("z", west, `{"A":"low"}`), "high"},
		"a negative priority loses": {
			dev().container("a", nil, `{"A":"zero"}`).container("z", west, `{"A":"low"}`).priority("-0.5"), "zero"},
		"priorities are compared as numbers": {
			dev().container("a", nil, `{"A":"ten"}`).priority("10").container("z", nil, `{"A":"nine"}`).priority("9.99"), "ten"},
		"large priorities are compared exactly": {
			dev().container("a", nil, `{"A":"more"}`).priority("9007199254740993").
				container("z", nil, `{"A":"less"}`).priority("9007199254740992"), "more"},
		"the name wins over labels": {
			dev().hydration(fleet.Hydration{Precedence: "name"}).
				container("z", nil, `{"A":"z"}`).container("a", west, `{"A":"a"}`), "z"},
		"priority wins over the name": {
			dev().hydration(fleet.Hydration{Precedence: "name"}).
				container("z", nil, `{"A":"z"}`).container("a", west, `{"A":"a"}`).priority("7"), "a"},
		"the name decides between equal ranks": {
			dev().hydration(fleet.Hydration{OnConflict: "override"}).container("z", west, `{"A":"z"}`).container("a", west, `{"A":"a"}`), "z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.assign("drone", "hello", labels{"region": "west", "edge": "true"}, nil).hydrate(t)
			equal(t, "values", result.All[0].JSON, `{"A":"`+test.want+`"}`)
			equal(t, "findings", findingLines(result.Findings), "")
		})
	}
}

func TestTypesAreKept(t *testing.T) {
	t.Parallel()
	data := `{"A":"0123","B":123,"C":"true","D":true,"E":"1.50","F":12345678901234567890123,"G":[],"H":{},"I":""}`
	result := dev().container("one", nil, data).assign("drone", "hello", nil, nil).hydrate(t)
	equal(t, "values", result.All[0].JSON, data)
	equal(t, "type of a string", result.All[0].Values()["A"], "0123")
}

func TestAssignmentsWithEqualContainersShareASnapshot(t *testing.T) {
	t.Parallel()
	result := dev().
		container("all", nil, `{"A":1}`).
		container("west", labels{"region": "west"}, `{"A":1}`).
		assign("drone", "hello", labels{"region": "east"}, nil).
		assign("large", "hello", labels{"region": "west"}, nil).
		assign("small", "hello", labels{"region": "east", "size": "small"}, nil).
		hydrate(t)
	if result.All[0] != result.All[2] || result.All[0] == result.All[1] {
		t.Error("only assignments with the same containers may share a snapshot")
	}
	equal(t, "equal values have equal versions", result.All[0].Version, result.All[1].Version)
	equal(t, "a version's length", len(result.All[0].Version), 16)
}

func TestNoContainersGiveNoValues(t *testing.T) {
	t.Parallel()
	result := dev().assign("drone", "hello", nil, nil).hydrate(t)
	equal(t, "known", result.All[0].Known, true)
	equal(t, "values", result.All[0].JSON, "{}")
}

func TestUnknownValuesMakeOnlyTheirSnapshotsUnknown(t *testing.T) {
	t.Parallel()
	result := dev().
		container("all", nil, `{"A":1,"PORT":"x"}`).
		container("database", labels{"size": "large"}, "").
		schema("net", nil, `{"required":["DATABASE_URL"]}`).
		assign("drone", "hello", nil, nil).
		assign("large", "hello", labels{"size": "large"}, nil).
		hydrate(t)
	large := result.All[1]
	equal(t, "drone", result.All[0].JSON, `{"A":1,"PORT":"x"}`)
	equal(t, "large is known", large.Known, false)
	equal(t, "JSON and version of large", large.JSON+large.Version, "")
	equal(t, "containers of large", large.Containers(), []string{"all", "database"})
	equal(t, "values", large.Values() == nil && large.Provenance() == nil, true)
	equal(t, "findings", findingLines(result.Findings),
		`config schema "net": /DATABASE_URL is required, and no config container has it (assignment "drone/hello-test")`)
}

func TestInvalidInputIsAnErrorWithTheContainer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    string
	}{
		"not JSON":        {dev().container("c", nil, `{`), `config container "c": unexpected EOF after offset 1`},
		"not an object":   {dev().container("c", nil, `[1]`), `config container "c": its data is not an object`},
		"no priority":     {dev().container("c", nil, `{}`).priority("high"), `config container "c": priority "high" is not a number`},
		"no mode of list": {dev().hydration(fleet.Hydration{Lists: "zip"}), `lists is "zip", and must be one of replace, append, merge`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tryHydrate(test.builder)
			equal(t, "error", err, test.want)
		})
	}
}
