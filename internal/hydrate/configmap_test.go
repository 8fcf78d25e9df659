package hydrate_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
)

func TestValuesOfConfigMaps(t *testing.T) {
	t.Parallel()
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
		"a: 1\n---\nb: 2\n":           `"a: 1\n---\nb: 2\n"`,
		"--- {a: 1}\n--- {b: 2}\n":    `"--- {a: 1}\n--- {b: 2}\n"`,
		"a: 1\n...\nb: 2\n":           `"a: 1\n...\nb: 2\n"`,
		"a: |\n  x\n  --- y\nb: 1\n":  `{"a":"x\n--- y\n","b":1}`,
		"-----BEGIN KEY-----\nx\n---": `"-----BEGIN KEY-----\nx\n---"`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			equal(t, "value", canonical(t, hydrate.ReadConfigMapValue(text)), want)
		})
	}
}

// FuzzReadConfigMapValue holds the reader against the YAML parser alone, which is far slower.
func FuzzReadConfigMapValue(f *testing.F) {
	for _, text := range []string{
		"plain", "a: 1", "- a", "'a: 1'", "{a: [1, 2]}", "a: 1\n---\nb: 2", "? a\n: b", "a:\u0085b", "&a - b", "!!map {}", "a: .nan",
		"%YAML 1.1\n--- a", "\ufeffa: 1", "a: 1e999999999", "[-]", "- - -", "a\r---\rb", "0123", "a: !!binary aGVsbG8=",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := hydrate.ReadConfigMapValue(text)
		if _, err := fleet.CanonicalJSON(value); err != nil {
			t.Fatalf("%q is read as %v, which has no JSON form: %v", text, value, err)
		}
		trimmed := strings.TrimSpace(text)
		if strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
			if value != strings.Trim(trimmed, "'") {
				t.Fatalf("%q is in single quotes, and read as %v", text, value)
			}
			return
		}
		var parsed any
		err := yaml.Unmarshal([]byte(text), &parsed)
		switch value := value.(type) {
		case string:
			if value != text {
				t.Fatalf("%q is read as other text: %q", text, value)
			}
			isCollection := false
			switch parsed.(type) {
			case map[string]any, []any:
				isCollection = true
			}
			several := strings.Contains(text, "---") || strings.Contains(text, "...")
			if err == nil && isCollection && !several {
				t.Fatalf("%q is YAML for %v, and stays text", text, parsed)
			}
		case map[string]any, []any:
			if err != nil {
				t.Fatalf("%q is no YAML, and read as %v", text, value)
			}
		default:
			t.Fatalf("%q is read as a %T", text, value)
		}
	})
}
