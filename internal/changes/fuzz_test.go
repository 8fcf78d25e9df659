package changes

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzKeysAreTheSameWithoutTheirValues compares any two texts of each format. Replacing the simple values
// must not change which keys differ, and what is shown must be short and on one line.
func FuzzKeysAreTheSameWithoutTheirValues(f *testing.F) {
	for _, seed := range [][3]string{
		{"platform-config.yaml", "kind: ConfigMap\nmetadata:\n  name: a\ndata:\n  URL: \"x\"\n", "kind: ConfigMap\nmetadata:\n  name: b\ndata:\n  URL: \"y\"\n  N: 1\n"},
		{"reconciler.yaml", "a: &x {b: 1}\nc: *x\n---\nd:\n- e\n- f: g\n", "a: &x {b: 2}\nc: *x\n---\nd:\n- e\n- f: h\n"},
		{"reconciler.yaml", "a: foo\n  bar: baz\n", "a: |\n  foo: bar\n"},
		{"reconciler.yaml", "<<: {a: b}\n? [x]\n: y\n", "<<: {a: c}\n? [x]\n: z\n"},
		{"platform-config.json", `{"A":{"B":[1,{"C":null}]}}`, `{"A":{"B":[1,{"C":true}]},"D":1}`},
		{"platform-config.env", "A='x\ny=z'\nB=1\n", "A='x\ny=w'\nC=\"\\\"\"\n"},
		{"platform-config.properties", "A=1\\\n  2\nB\\=C: 3\n", "A=1\nB\\=C: 4\n"},
		{"run.sh", "echo 1\n", "echo 2\n"},
		{"platform-config.yaml", "data:\n  platform-config.json: |\n    {\"A\": \"1\"}\n", "data:\n  platform-config.json: |\n    {\"A\": \"2\"}\n"},
	} {
		f.Add(seed[0], []byte(seed[1]), []byte(seed[2]))
	}
	f.Fuzz(func(t *testing.T, name string, before, after []byte) {
		if len(before)+len(after) > 1<<16 || bytes.Equal(before, after) {
			return
		}
		diff := newDiffer().diff(name, before, after)
		if len(diff.keys) == 0 || len(diff.keys) > maxKeys {
			t.Fatalf("%d keys", len(diff.keys))
		}
		for _, key := range diff.keys {
			if utf8.RuneCountInString(key.text) > (maxPath+2)*(maxWord+6)*10 || strings.ContainsFunc(key.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("key %q", key.text)
			}
		}
		plain := newCollector(roleOf(name) == configRole)
		var d differ
		if relabelled, _ := d.pair(before, after); bytes.Equal(relabelled, before) {
			return
		}
		if plain.texts(extensionOf(name), nil, before, after) && len(plain.keys) > 0 && diff.lines == 0 {
			if got, want := texts(diff.keys), texts(plain.keys); !slices.Equal(got, want) {
				t.Errorf("got %q, without relabelling %q", got, want)
			}
		}
	})
}

func texts(keys []keyChange) []string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = key.text
	}
	return all
}
