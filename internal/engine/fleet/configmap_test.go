package fleet_test

import (
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestValuesOfConfigMapsAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                       `"plain"`,
		"":                            `""`,
		"  spaces \n":                 `"  spaces \n"`,
		"0123":                        `"0123"`,
		"911":                         `"911"`,
		"1.50":                        `"1.50"`,
		"true":                        `"true"`,
		"null":                        `"null"`,
		"~":                           `"~"`,
		"mysql://west:8806/mysql2":    `"mysql://west:8806/mysql2"`,
		`"quoted"`:                    `"\"quoted\""`,
		"a: 1\nb: [x, 0.5]\n":         `{"a":1,"b":["x",0.5]}`,
		"a: \"0123\"\nb: 0911\n":      `{"a":"0123","b":911}`,
		"- a\n- b: true\n":            `["a",{"b":true}]`,
		"{}":                          `{}`,
		"[]":                          `[]`,
		`{"a": {"b": null}}`:          `{"a":{"b":null}}`,
		"key:":                        `{"key":null}`,
		"-":                           `[null]`,
		"? a\n: b\n":                  `{"a":"b"}`,
		"1: one\ntrue: yes\n":         `{"1":"one","true":true}`,
		"a: 9007199254740993":         `{"a":9007199254740993}`,
		"a: &x 1\nb: *x\n":            `{"a":1,"b":1}`,
		"'a: 1'":                      `"a: 1"`,
		" 'quoted' \n":                `"quoted"`,
		"''":                          `""`,
		"'":                           `""`,
		"''nested''":                  `"nested"`,
		"'it's: here'":                `"it's: here"`,
		"'a' and 'b'":                 `"a' and 'b"`,
		"a: [":                        `"a: ["`,
		"{{ .Values.x }}":             `"{{ .Values.x }}"`,
		"a: .inf":                     `"a: .inf"`,
		"? {a: 1}\n: b":               `"? {a: 1}\n: b"`,
		"# comment\n---\na: 1\n":      `{"a":1}`,
		"a: 1\n...\n":                 `{"a":1}`,
		"a: 1\n---\n":                 `{"a":1}`,
		"a: 1\n---\nb: 2\n":           `"a: 1\n---\nb: 2\n"`,
		"--- {a: 1}\n--- {b: 2}\n":    `"--- {a: 1}\n--- {b: 2}\n"`,
		"a: 1\n...\nb: 2\n":           `"a: 1\n...\nb: 2\n"`,
		"a: |\n  x\n  --- y\nb: 1\n":  `{"a":"x\n--- y\n","b":1}`,
		"-----BEGIN KEY-----\nx\n---": `"-----BEGIN KEY-----\nx\n---"`,
	} {
		t.Run(text, func(t *testing.T) {
			value, err := fleet.ReadConfigMapValue(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := fleet.CanonicalJSON(value); err != nil || got != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

func TestValuesOfConfigMapsAreBounded(t *testing.T) {
	for name, test := range map[string]struct{ text, err string }{
		"aliases of 59 KiB":          {"a: &a [" + strings.Repeat("x", 40_000) + "]\nb: [" + strings.Repeat("*a,", 6_500) + "]", "its aliases make it larger than 1 MiB, which is the most that a ConfigMap can hold"},
		"a value too large":          {strings.Repeat("x", 1<<20+1), "is larger than 1 MiB, which is the most that a ConfigMap can hold"},
		"too many values":            {"[" + strings.Repeat("1,", 200_000) + "]", "has more than 100000 keys and values"},
		"a text of the maximum size": {strings.Repeat("x", 1<<20), ""},
		"a table":                    {strings.Repeat("a, b - c\n", 100_000), ""},
		"a key of a file":            {"-----BEGIN KEY-----\n" + strings.Repeat(strings.Repeat("x", 64)+"\n", 15_000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			fleettest.Bounded(t, test.text, func() { _, err = fleet.ReadConfigMapValue(test.text) })
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got error %v, want %q", err, test.err)
			}
		})
	}
}

// FuzzReadConfigMapValue compares the reader with the YAML parser, which is far slower.
func FuzzReadConfigMapValue(f *testing.F) {
	for _, text := range []string{
		"plain", "a: 1", "- a", "'a: 1'", "{a: [1, 2]}", "a: 1\n---\nb: 2", "? a\n: b", "a:\u0085b", "&a - b", "!!map {}", "a: .nan",
		"%YAML 1.1\n--- a", "\ufeffa: 1", "a: 1e999999999", "[-]", "- - -", "a\r---\rb", "0123", "a: !!binary aGVsbG8=",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		var err error
		fleettest.Bounded(t, text, func() { value, err = fleet.ReadConfigMapValue(text) })
		if err != nil {
			return // the text exceeds a bound
		}
		if _, err := fleet.CanonicalJSON(value); err != nil {
			t.Fatalf("%q is read as %v, which has no JSON form: %v", text, value, err)
		}
		trimmed := strings.TrimSpace(text)
		if strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
			if value != strings.Trim(trimmed, "'") {
				t.Fatalf("%q is in single quotes, but is read as %v", text, value)
			}
			return
		}
		var parsed any
		err = yaml.Unmarshal([]byte(text), &parsed)
		switch value := value.(type) {
		case string:
			if value != text {
				t.Fatalf("%q is read as different text: %q", text, value)
			}
			isCollection := false
			switch parsed.(type) {
			case map[string]any, []any:
				isCollection = true
			}
			hasSeparator := strings.Contains(text, "---") || strings.Contains(text, "...")
			if err == nil && isCollection && !hasSeparator {
				t.Fatalf("%q is YAML for %v, but is read as text", text, parsed)
			}
		case map[string]any, []any:
			if err != nil {
				t.Fatalf("%q is no YAML, but is read as %v", text, value)
			}
		default:
			t.Fatalf("%q is read as a %T", text, value)
		}
	})
}

// A text with many documents can be dense in other ways than a single document.
func TestReadingControlPlanesIsBounded(t *testing.T) {
	const size = 1<<20 - 100
	long := strings.Repeat("x", 100_000)
	most := acceptancetest.Count(2_000, 8_000)
	for name, test := range map[string]struct{ before, unit, err string }{
		"empty documents":                   {"", "---\n", ""},
		"small documents":                   {"", "a\n---\n", "but one text may have 4000 at most: split it"},
		"documents of no kind":              {"", "a: b\n---\n" + strings.Repeat("# c\n", 70), "has no kind"},
		"unknown attributes":                {"kind: Namespace\nname: a\n", "xxxxxxxx%d: 1\n", "unknown attribute"},
		"unknown attributes of a long name": {"kind: Namespace\nname: " + long + "\n", "y%d: 1\n", "unknown attribute"},
		"invalid labels":                    {"kind: Namespace\nname: a\nmetadata:\n", " '%d ': a\n", "is not the key of a label"},
		"names":                             {"kind: Namespace\nname: a\ngroup: [b]\nmetadata:\n", " a%d: b\n", ""},
		"values of a ConfigMap":             {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: 'true'}}\ndata:\n", " a%d: '[1, 2, {a: b}]'\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			text.WriteString(test.before)
			for i := 0; text.Len() < size-len(test.unit) && (i < most || !strings.Contains(test.unit, "%d")); i++ {
				text.WriteString(strings.Replace(test.unit, "%d", strconv.Itoa(i), 1))
			}
			var findings fleet.Findings
			fleettest.Bounded(t, text.String(), func() { _, findings = fleet.DecodeControlPlane("dev", []any{text.String()}) })
			if problems := findings.Error(); test.err == "" && problems != "" || !strings.Contains(problems, test.err) {
				t.Errorf("got findings %.300s, want %q", problems, test.err)
			}
		})
	}
}

func TestBlockScalarsCountAsOneValue(t *testing.T) {
	file := strings.Repeat("      {\"a\": 1, \"b\": [2, 3]},\n", 20_000)
	for _, before := range []string{"a:\n  b: |\n", "a:\n  \"b.json\": >-\n", "a:\n  - |\n", "- - c: |\n      x\n", "a:\n  - b.c/d-e: |+\n"} {
		if err := fleet.CheckYAML(before + file + "z: 1\n"); err != nil {
			t.Errorf("%q: got error %v", before, err)
		}
	}
	values := "[" + strings.Repeat("1,", 120_000) + "]\n"
	for _, before := range []string{
		"# a: |\n ", "'a: |'\n ", "\"a: |\n \": ", "- a: |\n  b: ", "a: |\n  x\nb: ", "a: |\n\tb: ", "[\"\na: |\n \", ", "a: | # c\n  x\n  - ", "a: |\n",
	} {
		text := before + values
		if before == "a: |\n" {
			text = before + " x\n" + values
		}
		if err := fleet.CheckYAML(text); err == nil {
			t.Errorf("%q before a list of 120,000 numbers: got no error", before)
		}
	}
}
