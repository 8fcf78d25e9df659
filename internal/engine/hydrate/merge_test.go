package hydrate_test

import (
	"encoding/json"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects []string
		lists   string
		want    string
	}{
		"nothing":                               {nil, "", `{}`},
		"the later wins":                        {[]string{`{"a":1,"b":1}`, `{"a":2}`}, "", `{"a":2,"b":1}`},
		"objects merge deeply":                  {[]string{`{"a":{"x":{"y":1}}}`, `{"a":{"x":{"z":2}}}`}, "", `{"a":{"x":{"y":1,"z":2}}}`},
		"null removes a key":                    {[]string{`{"a":1,"b":2}`, `{"a":null}`}, "", `{"b":2}`},
		"null removes a nested key":             {[]string{`{"a":{"x":1,"y":2}}`, `{"a":{"x":null}}`}, "", `{"a":{"y":2}}`},
		"null leaves nothing":                   {[]string{`{"a":null,"b":{"c":null}}`}, "", `{"b":{}}`},
		"null leaves nothing in lists":          {[]string{`{"a":[{"b":null,"c":1},null]}`}, "", `{"a":[{"c":1},null]}`},
		"a removed key can come back":           {[]string{`{"a":{"x":1}}`, `{"a":null}`, `{"a":{"y":2}}`}, "", `{"a":{"y":2}}`},
		"an object overrides a scalar":          {[]string{`{"a":1}`, `{"a":{"x":1}}`}, "", `{"a":{"x":1}}`},
		"a scalar overrides an object":          {[]string{`{"a":{"x":1}}`, `{"a":"s"}`}, "", `{"a":"s"}`},
		"a list overrides an object":            {[]string{`{"a":{"x":1}}`, `{"a":[1]}`}, "append", `{"a":[1]}`},
		"an overridden object stays overridden": {[]string{`{"a":{"x":1}}`, `{"a":1}`, `{"a":{"y":1}}`}, "", `{"a":{"y":1}}`},
		"an empty object is no change":          {[]string{`{"a":{"x":1}}`, `{"a":{}}`}, "", `{"a":{"x":1}}`},
		"numbers become canonical":              {[]string{`{"a":1.50,"b":1e2}`}, "", `{"a":1.5,"b":100}`},
		"strings stay strings":                  {[]string{`{"a":"0123","b":"1.50"}`}, "", `{"a":"0123","b":"1.50"}`},
		"replace lists":                         {[]string{`{"a":[1,2]}`, `{"a":[3]}`}, "replace", `{"a":[3]}`},
		"replace is the default":                {[]string{`{"a":[1,2]}`, `{"a":[3]}`}, "", `{"a":[3]}`},
		"append lists":                          {[]string{`{"a":[1,2]}`, `{"a":[2,3]}`}, "append", `{"a":[1,2,2,3]}`},
		"merge lists by name":                   {[]string{`{"a":[{"name":"x","v":1},{"name":"y"}]}`, `{"a":[{"name":"x","w":2},{"name":"z"}]}`}, "merge", `{"a":[{"name":"x","v":1,"w":2},{"name":"y"},{"name":"z"}]}`},
		"merged elements merge deeply":          {[]string{`{"a":[{"name":"x","e":[{"name":"k","v":1}]}]}`, `{"a":[{"name":"x","e":[{"name":"k","v":2}]}]}`}, "merge", `{"a":[{"e":[{"name":"k","v":2}],"name":"x"}]}`},
		"elements without names are appended":   {[]string{`{"a":[{"v":1}]}`, `{"a":[{"v":1},{"name":null},{"name":{}}]}`}, "merge", `{"a":[{"v":1},{"v":1},{},{"name":{}}]}`},
		"scalars are appended, even equal":      {[]string{`{"a":[1,"x"]}`, `{"a":["x",2,null]}`}, "merge", `{"a":[1,"x","x",2,null]}`},
		"names of other types differ":           {[]string{`{"a":[{"name":"1"}]}`, `{"a":[{"name":1,"v":1}]}`}, "merge", `{"a":[{"name":"1"},{"name":1,"v":1}]}`},
		"equal numbers are one name":            {[]string{`{"a":[{"name":1.0}]}`, `{"a":[{"name":1,"v":1}]}`}, "merge", `{"a":[{"name":1,"v":1}]}`},
		"equal names in one list stay apart":    {[]string{`{"a":[{"name":"x","v":1},{"name":"x","v":2}]}`}, "merge", `{"a":[{"name":"x","v":1},{"name":"x","v":2}]}`},
		"equal names both merge":                {[]string{`{"a":[{"name":"x","v":1},{"name":"x","v":2}]}`, `{"a":[{"name":"x","w":[3]}]}`}, "merge", `{"a":[{"name":"x","v":1,"w":[3]},{"name":"x","v":2,"w":[3]}]}`},
		"null in a merged element":              {[]string{`{"a":[{"name":"x","v":1}]}`, `{"a":[{"name":"x","v":null}]}`}, "merge", `{"a":[{"name":"x"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			merged, err := hydrate.Merge(parseAll(t, test.objects), fleet.Hydration{Lists: test.lists})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "merged", canonical(t, merged), test.want)
		})
	}
}

func TestMergeByAnotherKey(t *testing.T) {
	t.Parallel()
	merged, err := hydrate.Merge(parseAll(t, []string{`{"a":[{"id":1,"v":1}]}`, `{"a":[{"id":1,"v":2},{"name":1}]}`}),
		fleet.Hydration{Lists: "merge", ListKey: "id"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "merged", canonical(t, merged), `{"a":[{"id":1,"v":2},{"name":1}]}`)
}

func TestMergeRefusesInvalidInput(t *testing.T) {
	t.Parallel()
	_, err := hydrate.Merge(nil, fleet.Hydration{Lists: "zip"})
	equal(t, "mode", err, `lists is "zip", and must be one of replace, append, merge`)
	_, err = hydrate.Merge([]map[string]any{{}, {"a": []any{fleet.Unknown{}}}}, fleet.Hydration{})
	equal(t, "unknown", err, `object 2: a value is not known yet`)
	_, err = hydrate.Merge([]map[string]any{{"a": 1}}, fleet.Hydration{})
	equal(t, "type", err, `object 1: a value of type int has no JSON form`)
	_, err = hydrate.Merge([]map[string]any{{"a": json.Number("one")}}, fleet.Hydration{})
	equal(t, "number", err, `object 1: "one" is not a number`)
}

func parseAll(t testing.TB, texts []string) []map[string]any {
	t.Helper()
	objects := make([]map[string]any, len(texts))
	for i, text := range texts {
		value, err := fleet.ParseJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		objects[i] = value.(map[string]any)
	}
	return objects
}

func canonical(t testing.TB, value any) string {
	t.Helper()
	text, err := fleet.CanonicalJSON(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
