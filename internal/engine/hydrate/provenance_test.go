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

func TestEveryLeafHasItsOrigin(t *testing.T) {
	t.Parallel()
	west := labels{"region": "west"}
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    string
	}{
		"one container":                       {dev().container("a", nil, `{"A":1}`), `/A: a`},
		"an overridden value":                 {dev().container("a", nil, `{"A":1}`).container("b", west, `{"A":2}`), `/A: b over a`},
		"objects leaf by leaf":                {dev().container("a", nil, `{"A":{"x":1,"y":1}}`).container("b", west, `{"A":{"y":2,"z":2}}`), `/A/x: a, /A/y: b over a, /A/z: b`},
		"lists leaf by leaf":                  {dev().container("a", nil, `{"A":[1,{"x":2},[]]}`), `/A/0: a, /A/1/x: a, /A/2: a`},
		"a list that was replaced":            {dev().container("a", nil, `{"A":[1,2]}`).container("b", west, `{"A":[3]}`), `/A/0: b over a`},
		"empty objects and lists":             {dev().container("a", nil, `{"A":{},"B":[]}`), `/A: a, /B: a`},
		"removed values":                      {dev().container("a", nil, `{"A":1,"B":{"x":1}}`).container("b", west, `{"A":null,"B":{"x":null}}`), `/B: b`},
		"a value set again after its removal": {dev().container("a", nil, `{"A":1}`).container("b", west, `{"A":null}`).container("c", nil, `{"A":3}`).priority("1"), `/A: c over a b`},
		"an object over a scalar":             {dev().container("a", nil, `{"A":1}`).container("b", west, `{"A":{"x":1,"y":{"z":2}}}`), `/A/x: b over a, /A/y/z: b over a`},
		"a scalar over objects":               {dev().container("a", nil, `{"A":{"x":1}}`).container("b", nil, `{"A":{"y":1}}`).container("c", west, `{"A":1}`), `/A: c over a b`},
		"keys are escaped":                    {dev().container("a", nil, `{"a/b":{"c~d":1},"":2}`), `/: a, /a~1b/c~0d: a`},
		"a null in a list":                    {dev().container("a", nil, `{"A":[null]}`), `/A/0: a`},
		"appended lists":                      {dev().hydration(fleet.Hydration{Lists: "append"}).container("a", nil, `{"A":[1]}`).container("b", west, `{"A":[1]}`), `/A/0: a, /A/1: b`},
		"merged elements":                     {dev().hydration(fleet.Hydration{Lists: "merge"}).container("a", nil, `{"A":[{"name":"x","v":1}]}`).container("b", west, `{"A":[{"name":"x","v":2}]}`), `/A/0/name: b over a, /A/0/v: b over a`},
		"text of ConfigMaps":                  {dev().configMap("a", nil, `{"A":"x: 1"}`), `/A/x: a`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.assign("drone", "hello", west, nil).hydrate(t)
			equal(t, "provenance", describe(result.All[0].Provenance()), test.want)
		})
	}
}

func describe(origins map[string]hydrate.Origin) string {
	var lines []string
	for _, pointer := range slices.Sorted(maps.Keys(origins)) {
		origin := origins[pointer]
		line := pointer + ": " + origin.Container
		if len(origin.Overridden) > 0 {
			line += " over " + strings.Join(origin.Overridden, " ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func TestUsesListsAssignmentsWithAKey(t *testing.T) {
	t.Parallel()
	g := dev().
		container("all", nil, `{"LOG":{"level":"info"}}`).
		container("west", labels{"region": "west"}, `{"DATABASE_URL":"w","a/b":[1]}`).
		container("quiet", labels{"size": "small"}, `{"LOG":null}`).
		container("pending", labels{"size": "large"}, "").
		assign("drone", "hello", labels{"region": "west"}, nil).
		assign("small", "hello", labels{"region": "west", "size": "small"}, nil).
		assign("large", "hello", labels{"region": "west", "size": "large"}, nil).
		assign("east", "hello", nil, nil)
	result := g.hydrate(t)
	for pointer, want := range map[string]string{
		"/DATABASE_URL":   "drone small large",
		"/LOG":            "drone large east",
		"/LOG/level":      "drone large east",
		"/LOG/level/x":    "",
		"/a~1b/0":         "drone small large",
		"/a~1b/1":         "",
		"/NOBODY":         "",
		"":                "drone small large east",
		"/database_url":   "",
		"/DATABASE_URL/0": "",
	} {
		using, err := hydrate.Uses(result, g.assignments, pointer)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("uses of %q", pointer), strings.ReplaceAll(strings.Join(using, " "), "/hello-test", ""), want)
	}
	for pointer, want := range map[string]string{
		"DATABASE_URL": `"DATABASE_URL" is not a JSON pointer: it does not begin with a slash, as in "/DATABASE_URL"`,
		"/a~b":         `"/a~b" is not a JSON pointer: a tilde in a key is written ~0`,
	} {
		_, err := hydrate.Uses(result, g.assignments, pointer)
		equal(t, "error", err, want)
	}
}
