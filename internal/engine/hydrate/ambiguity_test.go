package hydrate_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestAmbiguities(t *testing.T) {
	t.Parallel()
	one, other := labels{"region": "west"}, labels{"edge": "true"}
	both := labels{"region": "west", "edge": "true"}
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    string // pointers and containers
	}{
		"two values for one key": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":2}`), "/A a b"},
		"equal values": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":1.0}`), ""},
		"two equal values of three": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":2}`).container("c", other, `{"A":1}`), "/A a b c"},
		"different keys": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"B":2}`), ""},
		"different ranks": {
			dev().container("a", nil, `{"A":1}`).container("b", other, `{"A":2}`), ""},
		"different priorities": {
			dev().container("a", one, `{"A":1}`).priority("1").container("b", other, `{"A":2}`), ""},
		"equal priorities": {
			dev().container("a", one, `{"A":1}`).priority("1").container("b", other, `{"A":2}`).priority("1.0"), "/A a b"},
		"a higher rank overrides both": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":2}`).container("c", both, `{"A":3}`), ""},
		"a higher rank removes both": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":2}`).container("c", both, `{"A":null}`), ""},
		"a lower rank changes nothing": {
			dev().container("0", nil, `{"A":3}`).container("a", one, `{"A":1}`).container("b", other, `{"A":2}`), "/A a b"},
		"within objects": {
			dev().container("a", one, `{"A":{"x":1,"y":1}}`).container("b", other, `{"A":{"x":2,"z":1}}`), "/A/x a b"},
		"within objects, overridden there": {
			dev().container("a", one, `{"A":{"x":1}}`).container("b", other, `{"A":{"x":2}}`).container("c", both, `{"A":{"x":3}}`), ""},
		"within objects, overridden as a whole": {
			dev().container("a", one, `{"A":{"x":1}}`).container("b", other, `{"A":{"x":2}}`).container("c", both, `{"A":"s"}`), ""},
		"within objects, overridden elsewhere": {
			dev().container("a", one, `{"A":{"x":1}}`).container("b", other, `{"A":{"x":2}}`).container("c", both, `{"A":{"y":3}}`), "/A/x a b"},
		"a value and its removal": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":null}`), "/A a b"},
		"two removals": {
			dev().container("0", nil, `{"A":1}`).container("a", one, `{"A":null}`).container("b", other, `{"A":null}`), ""},
		"an object and a scalar": {
			dev().container("a", one, `{"A":{"x":1}}`).container("b", other, `{"A":1}`), "/A a b"},
		"an object and a scalar below an object": {
			dev().container("a", one, `{"A":{"x":1}}`).container("b", other, `{"A":1}`).container("c", both, `{"A":{"y":1}}`), "/A a b"},
		"an object and a scalar below an object that covers it": {
			dev().container("a", one, `{"A":{"x":1}}`).container("b", other, `{"A":1}`).container("c", both, `{"A":{"x":2}}`), ""},
		"two scalars below an object": {
			dev().container("a", one, `{"A":2}`).container("b", other, `{"A":1}`).container("c", both, `{"A":{"x":2}}`), ""},
		"replaced lists": {
			dev().container("a", one, `{"A":[1]}`).container("b", other, `{"A":[2]}`), "/A a b"},
		"appended lists": {
			dev().hydration(fleet.Hydration{Lists: "append"}).container("a", one, `{"A":[1]}`).container("b", other, `{"A":[2]}`), ""},
		"merged elements": {
			dev().hydration(fleet.Hydration{Lists: "merge"}).
				container("a", one, `{"A":[{"name":"x","v":1}]}`).container("b", other, `{"A":[{"name":"y"},{"name":"x","v":2}]}`), "/A/0/v a b"},
		"escaped names": {
			dev().container("a", one, `{"a/b~c":1}`).container("b", other, `{"a/b~c":2}`), "/a~1b~0c a b"},
		"precedence by name": {
			dev().hydration(fleet.Hydration{Precedence: "name"}).container("a", one, `{"A":1}`).container("b", other, `{"A":2}`), ""},
		"a text and a number": {
			dev().configMap("a", one, `{"A":"1"}`).container("b", other, `{"A":1}`), "/A a b"},
		"parsed values of ConfigMaps": {
			dev().configMap("a", one, `{"A":"x: 1"}`).container("b", other, `{"A":{"x":1}}`), ""},
		"an unknown container of a higher rank": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":2}`).container("c", both, ""), ""},
		"an unknown container of the same rank": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":2}`).container("c", other, ""), "/A a b"},
		"an unknown container of a lower rank": {
			dev().container("a", one, `{"A":1}`).container("b", other, `{"A":2}`).container("c", nil, ""), "/A a b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.assign("drone", "hello", both, nil).hydrate(t)
			var found []string
			for _, finding := range result.Findings {
				_, list, _ := strings.Cut(finding.Message, "containers ")
				list, _, _ = strings.Cut(list, " have equal")
				found = append(found, finding.Pointer+" "+strings.NewReplacer(`"`, "", ",", "", "and ", "").Replace(list))
			}
			equal(t, "ambiguities", strings.Join(found, "; "), test.want)
		})
	}
}

func TestAmbiguityIsOneFindingForAllItsAssignments(t *testing.T) {
	t.Parallel()
	conflict := func(onConflict string) *fleetBuilder {
		return dev().hydration(fleet.Hydration{OnConflict: onConflict}).
			container("a", labels{"region": "west"}, `{"A":1}`).container("b", labels{"size": "small"}, `{"A":2}`).
			container("elsewhere", labels{"deployment-target": "other-test"}, `{"B":1}`).
			assign("small", "hello", labels{"region": "west", "size": "small"}, nil).
			assign("small", "hi", labels{"region": "west", "size": "small"}, nil).
			assign("small", "other", labels{"region": "west", "size": "small"}, nil)
	}
	sentence := `config container "b": /A is ambiguous: the containers "a" and "b" have equal priority and equally many labels, and give different values; ` +
		`raise the priority of the one that should win (assignment "small/hello-test" and 2 more)`
	for onConflict, want := range map[string]struct{ findings, warnings string }{
		"":         {sentence, ""},
		"error":    {sentence, ""},
		"warn":     {"", sentence},
		"override": {"", ""},
	} {
		result := conflict(onConflict).hydrate(t)
		equal(t, onConflict+" findings", findingLines(result.Findings), want.findings)
		equal(t, onConflict+" warnings", findingLines(result.Warnings), want.warnings)
		equal(t, onConflict+" value", result.All[0].JSON, `{"A":2}`)
	}
}
