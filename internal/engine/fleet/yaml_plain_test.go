package fleet

import (
	"reflect"
	"strings"
	"testing"
)

var plainDocuments = []string{
	"a: b\nc:\n  d: e\n",
	"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: \"x\"\n  labels:\n    a.b/c: d\n",
	"a:\n  - b: c\n    d: e\n  - f\n  -\n    g: h\nlist:\n- 1\n- 0\n- true\n",
	"a: |\n    x: y\n\n    z\nb: |-\n  one\n  two\nc: {}\nd: []\n",
	"a: 64Gi\nb: 10m\nc: 1h30m\nd: 1e3\ne: 3ms\n", "# comment\na: 'b c'\n\n  # more\nb: https://x.example:443/a#b\n",
	"- a\n- b: c\n- - d\n", "a: b: c\n", "a: \"x\\n\"\n", "a: on\n", "on: a\n", "a: 1.5\n", "a: 012\n", "a: 1_0\n", "a: b\n  c\n", "a: b #c\n", "a: *b\n", "a: &b c\n", "<<: a\n",
	"a: b\na: c\n", "a:\n", "a:\nb:\n", "a: |\n", "a: |\n  b", "a: |\n  b\n\n\n", "a: |\n\n  b\n", "a: |\n  b\n # c\nd: e\n", " a: b\n", "a: b\n c: d\n", "a:\n    b: c\n  d: e\n", "a: 2026-11-22\n",
	"a: =\n", "a: ~\n", "a: !!str 1\n", "? a\n", "{a: b}", "a: [b]\n", "a: >\n  b\n", "a: b:\n", "a: \"b\" c\n", "a: 'b''c'\n", "a: -\n", "- \n", "-\n-\n", "a: - b\n", "a: b\n---\nc: d\n", "a: 0x1\n", "a: e1\n", "a: |\n  b\n c: d\n", "a:\n- b\n  - c\n", "a: 1:20\n", "-  a\n", "- a: b\n   c: d\n", "a:  b\n", "a : b\n", "a:  # b\n  c: d\n", "a: %b\n", "a: @b\n", "a: `b\n", "a: .inf\n",
	strings.Repeat("k", 1000) + ": a\n", strings.Repeat("k", 1100) + ": a\n", // YAML limits keys without quotes
}

// TestPlainYAMLIsReadAsByTheFullReader compares the fast reader with the full reader.
func TestPlainYAMLIsReadAsByTheFullReader(t *testing.T) {
	t.Parallel()
	plain := 0
	for _, text := range plainDocuments {
		if comparePlain(t, text) {
			plain++
		}
	}
	if plain < 5 {
		t.Errorf("only %d documents are plain", plain)
	}
	for i, text := range plainDocuments[:4] {
		if _, ok := readPlainYAML(text); !ok {
			t.Errorf("document %d is not read as plain YAML", i)
		}
	}
}

func comparePlain(t *testing.T, text string) bool {
	t.Helper()
	value, ok := readPlainYAML(text)
	if !ok {
		return false
	}
	want, err := ParseYAML(text)
	if err != nil || !reflect.DeepEqual(value, want) {
		t.Errorf("%q: got %#v, want %#v (%v)", text, value, want, err)
	}
	return true
}

func FuzzPlainYAML(f *testing.F) {
	for _, text := range plainDocuments {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { comparePlain(t, text) })
}
