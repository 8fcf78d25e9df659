package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestYAMLReader(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want any
		err  string
	}{
		"a mapping":               {"a: 1\nb: [x, null]", map[string]any{"a": json.Number("1"), "b": []any{"x", nil}}, ""},
		"nothing":                 {"", nil, ""},
		"comments":                {"# nothing\n\n# here\n", nil, ""},
		"a marker and a comment":  {"# c\n--- # d\na: b # e\n", map[string]any{"a": "b"}, ""},
		"a value on the marker":   {"--- {a: b}\n", map[string]any{"a": "b"}, ""},
		"a directive":             {"%YAML 1.2\n---\na: b\n", map[string]any{"a": "b"}, ""},
		"an end marker":           {"a: b\n...\n", map[string]any{"a": "b"}, ""},
		"empty documents":         {"---\n---\na: b\n---\n# c\n", map[string]any{"a": "b"}, ""},
		"Windows line ends":       {"a: |\r\n  x\r\n  y\r\nb: z\r\n", map[string]any{"a": "x\ny\n", "b": "z"}, ""},
		"old Mac line ends":       {"a: b\rc: d\r", map[string]any{"a": "b", "c": "d"}, ""},
		"a byte order mark":       {"\ufeff---\na: b", map[string]any{"a": "b"}, ""},
		"a marker inside a block": {"a: |\n  ---\n  x\n", map[string]any{"a": "---\nx\n"}, ""},
		"dashes without a marker": {"---a: b\n", map[string]any{"---a": "b"}, ""},
		"JSON":                    {`{"a": "x\u2028y"}`, map[string]any{"a": "x\u2028y"}, ""},
		"an alias":                {"a: &x [1]\nb: *x", map[string]any{"a": []any{json.Number("1")}, "b": []any{json.Number("1")}}, ""},
		"a date":                  {"a: 2001-01-01", map[string]any{"a": "2001-01-01"}, ""},

		"two documents":                      {"a: b\n---\nc: d", nil, "has more than one YAML document, the second from line 3"},
		"two documents with an end marker":   {"a: b\n...\nc: d", nil, "has more than one YAML document, the second from line 3"},
		"two documents with other line ends": {"a: b\u2028---\u2028c: d", nil, "has more than one YAML document, the second from line 3"},
		"a key twice":                        {"a: 1\nb: 2\na: 3", nil, `invalid YAML, line 3: key "a" already set in map`},
		"a key twice after a marker":         {"# c\n---\na: 1\na: 3", nil, `invalid YAML, line 4: key "a" already set in map`},
		"a key twice deep inside":            {"a:\r\n  b: 1\r\n  b: 2", nil, `invalid YAML, line 3: key "b" already set in map`},
		"an open bracket":                    {"a: 1\nb: [1, 2\nc: 3", nil, "invalid YAML, line 2: did not find expected ',' or ']'"},
		"a tab":                              {"a:\n\tb: 1", nil, "invalid YAML, line 2: found character that cannot start any token"},
		"a control character":                {"a: \x01", nil, "control characters are not allowed"},
		"not a number":                       {"a: .nan", nil, "unsupported value: NaN"},
		"an alias to itself":                 {"a: &a [*a]", nil, "anchor 'a' value contains itself"},
		"an alias to nothing":                {"a: *b", nil, "unknown anchor 'b' referenced"},
		"a bomb of aliases":                  {bomb(), nil, "YAML from line 1 its aliases make it larger than 1 MiB, which is the most that a ConfigMap can hold"},
		"a list as a key":                    {"? [a]\n: b", nil, "invalid YAML, from line 1: a key is not a string"},
		"endless nesting":                    {strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), nil, "nested deeper than 1000 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fleet.ParseYAML(test.text)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, %v, want %#v", got, err, test.want)
			}
		})
	}
}

// Dense texts take the most memory. If they exceed a bound, the error names the bound.
func TestReadingYAMLIsBounded(t *testing.T) {
	const size = 1<<20 - 8
	long := strings.Repeat("x", 20_000)
	for name, test := range map[string]struct{ before, unit, after, err string }{
		"a list":                 {"[", "1,", "]", "has more than 100000 keys and values"},
		"maps":                   {"[", "{},", "]", "has more than 100000 keys and values"},
		"maps of one":            {"[", "{a: },", "]", "has more than 100000 keys and values"},
		"JSON":                   {"[", `{"a":0},`, "]", "has more than 100000 keys and values"},
		"a map":                  {"{", "? a,", "}", "has more than 100000 keys and values"},
		"a block":                {"", "- a:\n", "", "has more than 100000 keys and values"},
		"empty items":            {"", "-\n", "", "has more than 100000 keys and values"},
		"items in items":         {"", "- ", "", "has more than 100000 keys and values"},
		"brackets":               {"", "[", "", "has more than 100000 keys and values"},
		"braces":                 {"", "{", "", "has more than 100000 keys and values"},
		"questions":              {"", "? ", "", "has more than 100000 keys and values"},
		"words":                  {"", "a ", "", ""},
		"lines":                  {"", "a\n", "", ""},
		"a block scalar":         {"|\n", " a,\n", "", ""},
		"a folded scalar":        {">\n", " a\n\n", "", ""},
		"quotes":                 {`"`, `\n`, `"`, ""},
		"escapes":                {`"`, `\x01`, `"`, ""},
		"comments":               {"", "#,\n", "", ""},
		"tables":                 {"", "a,b,c\n", "", ""},
		"tags":                   {"", "!a ", "", ""},
		"anchors":                {"", "&a ", "", ""},
		"tabs":                   {"a:\n", "\t", "b", "found character that cannot start any token"},
		"a list before the end":  {"a: [", strings.Repeat("1,", 10) + strings.Repeat(" ", 500), "", "did not find"},
		"aliases of a long text": {"a: &a " + long + "\nb:\n", "- *a\n", "", "has more than 100000 keys and values"},
	} {
		if test.err == "" && !acceptancetest.All() && !slices.Contains([]string{"words", "a folded scalar", "escapes", "anchors"}, name) {
			continue // the others are as dense, in blocks or flows
		}
		t.Run(name, func(t *testing.T) {
			times := (size - len(test.before) - len(test.after)) / len(test.unit)
			readers := []func(string) (any, error){fleet.ParseYAML, fleet.ParseLooseYAML}
			if !acceptancetest.All() {
				readers = readers[:1] // TestReadingControlPlanesIsBounded covers the other reader
				if strings.Contains(test.err, "100000") {
					times = min(times, 100_001)
				}
			}
			text := test.before + strings.Repeat(test.unit, times) + test.after
			for _, read := range readers {
				var err error
				fleettest.Bounded(t, text, func() { _, err = read(text) })
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("got error %.200v, want %q", err, test.err)
				}
			}
		})
	}
}

func TestAliasesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for name, test := range map[string]struct{ text, err string }{
		"a long text, often":         {"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 9_000) + "]", "its aliases make it larger than 1 MiB"},
		"the maximum length":         {"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 50) + "]", ""},
		"a key":                      {"? &a " + strings.Repeat("x", 1_000) + "\n: 1\nb:\n" + strings.Repeat("- {*a : 1}\n", 2_000), "its aliases make it larger than 1 MiB"},
		"merged maps":                {"a: &a {b: " + long + "}\nc:\n" + strings.Repeat("- <<: *a\n", 200), "its aliases make it larger than 1 MiB"},
		"many values":                {"a: &a [" + strings.Repeat("1,", 1_000) + "]\nb: [" + strings.Repeat("*a, ", 200) + "]", "its aliases make more than 100000 keys and values"},
		"a bomb":                     {bomb(), "its aliases make it larger than 1 MiB"},
		"an alias to its parent":     {"a: &a {b: [*a]}", "anchor 'a' value contains itself"},
		"an alias to a list in JSON": {`{"a":&a [1],"b":*a}`, ""},
		"an alias before its anchor": {"a: *b\nc: &b 1\nd: *b", "unknown anchor 'b' referenced"},
		"an anchor defined twice":    {"a: &a 1\nb: &a [*a]\nc: *a", "contains itself"},
		"asterisks without an alias": {"a: &a 1\ncron: '*/5 * * * *'\nb: x*y", ""},
		"the maximum number":         {"a: &a x\nb: [" + strings.Repeat("*a,", 99_000) + "]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(string) (any, error){fleet.ParseYAML, fleet.ParseLooseYAML} {
				var err error
				fleettest.Bounded(t, test.text, func() { _, err = read(test.text) })
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("got error %.200v, want %q", err, test.err)
				}
			}
		})
	}
}

func TestDocumentsTooLargeForKubernetesAreRefused(t *testing.T) {
	_, err := fleet.ParseYAML("# c\n---\na: " + strings.Repeat("x", 3<<19))
	var bound *fleet.BoundError
	if !errors.As(err, &bound) ||
		err.Error() != "YAML from line 3 is larger than 1.5 MiB, which is the most that Kubernetes stores as one object" {
		t.Error(err)
	}
	_, findings := fleet.DecodeControlPlane("dev", []any{"kind: x\n---\na: " + strings.Repeat("x", 3<<19)})
	if len(findings) == 0 || !strings.Contains(findings.Error(), "documents[0]: document 2, from line 3: is larger than 1.5 MiB") {
		t.Error(findings)
	}
}

// FuzzParseLooseYAML compares the reader with Kubernetes' own, and checks its bounds.
func FuzzParseLooseYAML(f *testing.F) {
	for _, text := range []string{
		"a: 1", "1: a\n1.5: b\ntrue: c\n~: d\n0x10: e", "a: !!binary /w==", "- 1e3\n- 0o7\n- 017\n- 1_000\n- .inf\n- 2001-01-01\n- 18446744073709551615", "a: &b [*b]",
		"a: &b {c: 1}\nd: {<<: *b, e: 2}", "a: &a x\nb: [*a, *a]", bomb(), "\ufeff? |\n  a\n: b", "\"\\ud800\"", "{\"a\":*b,\"c\":&b 1}", "%YAML 1.1\n---\n- on\n- ~",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		var err error
		fleettest.Bounded(t, text, func() { value, err = fleet.ParseLooseYAML(text) })
		var bound *fleet.BoundError
		if errors.As(err, &bound) {
			return
		}
		asJSON, wantErr := yaml.YAMLToJSON([]byte(text))
		if wantErr != nil {
			if err == nil {
				t.Fatalf("%q: got %#v, Kubernetes has error %v", text, value, wantErr)
			}
			return
		}
		want, wantErr := fleet.ParseJSON(string(asJSON))
		if err != nil && (wantErr != nil || strings.Contains(err.Error(), "already set in map") || strings.Contains(text, "*")) {
			return // Kubernetes accepts duplicate keys; another parser reads aliases first
		}
		if err != nil || wantErr != nil || !reflect.DeepEqual(value, want) {
			t.Fatalf("%q: got %#v, %v, Kubernetes has %#v, %v", text, value, err, want, wantErr)
		}
	})
}

// bomb returns a small text with aliases that expand to gigabytes.
func bomb() string {
	text := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		text += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	return text
}

func TestFindingsNameTextDocumentAndLine(t *testing.T) {
	_, findings := fleet.DecodeControlPlane("dev", map[string]any{
		"one.yaml": "# comment\n---\nkind: Namespace\nname: a\n---\nkind: Namespace\r\nname: b\r\nname: c\n---\nkind: Namespace\nname: D\n",
		"two.yaml": "- a\n",
		"bad.yaml": json.Number("7"),
	})
	wantFindings(t, findings,
		`documents["one.yaml"]: document 2, line 8: key "name" already set in map`,
		`documents["one.yaml"] document 3 (line 10, Namespace "D").name: "D" is not a DNS label`,
		`documents["two.yaml"] document 1 (line 1): must be an object, not a list`,
		`documents["bad.yaml"]: must be the text of YAML documents, not a number`,
	)
}

func FuzzParseYAML(f *testing.F) {
	for _, text := range []string{"a: 1\n---\nb: 2\n...\n", "%YAML 1.1\n--- |\n x", "a: &b [*b]", "\ufeff# c\r\n---\r\na: b", "{\"a\": [1.5e3, null]}", "<<: {a: 1}", "? a", "- - - a", "? " + strings.Repeat("k", 2000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		var err error
		fleettest.Bounded(t, text, func() { value, err = fleet.ParseYAML(text) })
		if err != nil {
			return
		}
		canonical, err := fleet.CanonicalJSON(value)
		if err != nil {
			t.Fatalf("%q is %#v, which has no JSON: %v", text, value, err)
		}
		if longestKey(value) > 1000 {
			return // YAML accepts longer keys only after a question mark, which JSON lacks
		}
		again, err := fleet.ParseYAML(canonical)
		if err != nil {
			t.Fatalf("%q: its JSON %s is no YAML: %v", text, canonical, err)
		}
		if twice, err := fleet.CanonicalJSON(again); err != nil || twice != canonical {
			t.Fatalf("%q: its JSON %s, read as YAML, is %s, %v", text, canonical, twice, err)
		}
	})
}

// longestKey returns the length of the longest key in a value, in bytes as JSON writes it.
func longestKey(value any) int {
	longest := 0
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			longest = max(longest, longestKey(element))
		}
	case map[string]any:
		for key, member := range value {
			quoted, _ := fleet.CanonicalJSON(key)
			longest = max(longest, len(quoted), longestKey(member))
		}
	}
	return longest
}

func TestControlPlanesAreReadAsByKustomize(t *testing.T) {
	decoded, findings := fleet.DecodeControlPlane("dev", []any{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: 'true'}}\n" +
		"data: {NO: no, ON: Off, y: Y, 2026-01-31: 2026-01-31T18:00:00Z, base: &b yes, again: *b, <<: {merged: on, y: n}}"})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	const want = `{"2026-01-31":"2026-01-31T18:00:00Z","NO":"no","ON":"Off","again":"yes","base":"yes","merged":"on","y":"Y"}`
	if got := decoded.Config["a"]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzDecodeControlPlane(f *testing.F) {
	f.Add(
		"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {name: a}\nspec: {}\n---\nkind: Application\nname: a\nrepo_url: b",
	)
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: 'true'}}\ndata: {A: b}")
	f.Add("kind: TargetPolicy\nname: a\napp_selector: {}\ncluster_selector: {}")
	f.Add("kind: Cluster\nname: a\nmetadata: {on: &a yes, y: *a, <<: {2026-01-31: 2026-01-31}}")
	f.Fuzz(func(t *testing.T, text string) {
		var decoded *fleet.Decoded
		var findings fleet.Findings
		fleettest.Bounded(t, text, func() { decoded, findings = fleet.DecodeControlPlane("dev", []any{text}) })
		if len(findings) > 0 {
			return
		}
		parsed, err := fleet.ParseModel(model(t, decoded.Fleet))
		if err != nil {
			t.Fatal(err)
		}
		if model(t, parsed) != model(t, decoded.Fleet) {
			t.Fatalf("model %s becomes %s", model(t, decoded.Fleet), model(t, parsed))
		}
	})
}
