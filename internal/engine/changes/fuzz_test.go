package changes

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// FuzzKeysAreFewAndOnOneLine compares two texts of each format, with limits for time and memory. The keys must be few, short
// and on one line.
func FuzzKeysAreFewAndOnOneLine(f *testing.F) {
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
		var diff *fileDiff
		fleettest.Bounded(t, string(before)+string(after), func() { diff = diffOf(name, &folder.File{Content: before}, &folder.File{Content: after}) })
		if len(diff.keys) == 0 || len(diff.keys) > maxKeys {
			t.Fatalf("%d keys", len(diff.keys))
		}
		for _, key := range diff.keys {
			if utf8.RuneCountInString(key.english()) > (maxPath+2)*(maxWord+6)*10 || strings.ContainsFunc(key.english(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("key %q", key.english())
			}
		}
	})
}

// TestHostileFilesCostLittleTimeAndMemory compares files with high costs for parsers.
func TestHostileFilesCostLittleTimeAndMemory(t *testing.T) {
	repeat := func(part func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < 250<<10; i++ {
			b.WriteString(part(i))
		}
		return b.String()
	}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for name, text := range map[string]string{
		"bomb.yaml":          bomb,
		"deep.yaml":          repeat(func(int) string { return "[" }),
		"deeper.yaml":        repeat(func(i int) string { return strings.Repeat(" ", i) + "a:\n" }),
		"deep.json":          strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900),
		"wide.json":          "[" + repeat(func(int) string { return "1," }) + "1]",
		"keys.yaml":          repeat(func(i int) string { return fmt.Sprintf("k%d: v%d\n", i, i) }),
		"documents.yaml":     repeat(func(i int) string { return fmt.Sprintf("--- %d\n", i) }),
		"objects.yaml":       repeat(func(i int) string { return fmt.Sprintf("---\nkind: A\nmetadata: {name: n%d}\n", i) }),
		"lines.txt":          repeat(func(int) string { return "\n" }),
		"different.txt":      repeat(func(i int) string { return fmt.Sprintf("%x\n", i) }),
		"keys.env":           repeat(func(i int) string { return fmt.Sprintf("K%d='\n'\n", i) }),
		"quotes.env":         "A=" + repeat(func(int) string { return "''" }),
		"goes-on.properties": "a=" + repeat(func(int) string { return "\\\n" }),
		"huge.txt":           strings.Repeat("a\n", 400<<10),
	} {
		t.Run(name, func(t *testing.T) {
			for _, after := range []string{text + "\n#", strings.ReplaceAll(text, "v", "w") + "\nx: 1\n", ""} {
				fleettest.Bounded(t, text+after, func() { diffOf(name, &folder.File{Content: []byte(text)}, &folder.File{Content: []byte(after)}) })
			}
		})
	}
}
