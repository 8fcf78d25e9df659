package changes_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestConfigValuesReadsEveryFormat(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, text string
		want       map[string]string // nil if the file is not readable
	}{
		"a ConfigMap":    {"platform-config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: y}\ndata: {A: \"1\", B.C: two}\n", map[string]string{"A": "1", `["B.C"]`: "two"}},
		"no data":        {"platform-config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", map[string]string{}},
		"a JSON file":    {"platform-config.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  platform-config.json: '{\"A\":{\"B\":[1],\"C\":{}},\"D\":null}'\n", map[string]string{"A.B": "[1]", "A.C": "{}", "D": "null"}},
		"an env file":    {"platform-config.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  platform-config.env: \"A='x\\ny'\\nB=\\n\"\n", map[string]string{"A": "'x\ny'", "B": ""}},
		"another object": {"config.yaml", "apiVersion: x/v1\nkind: Catalog\nmetadata: {name: x}\nspec: {properties: {A: 1}}\n", map[string]string{"spec.properties.A": "1"}},
		"no object":      {"config.yaml", "A: true\nkind: x\n---\nA: false\n", map[string]string{"A": "true\nfalse", "kind": "x"}},
		"JSON":           {"platform-config.json", `{"A":"x","B":1.50}`, map[string]string{"A": "x", "B": "1.5"}},
		"properties":     {"platform-config.properties", "A=1\nB\\=C=2\n", map[string]string{"A": "1", `["B\=C"]`: "2"}},
		"deep":           {"config.json", `{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}}}}}`, map[string]string{"a.a.a.a.a.a.a.a.a.a.a.a": `{"a":1}`}},
		"a list":         {"config.json", `[1]`, map[string]string{"all of it": "[1]"}},
		"broken":         {"platform-config.json", `{`, nil},
		"another format": {"platform-config.toml", "A = 1\n", nil},
		"another file":   {"reconciler.yaml", "A: 1\n", nil},
	} {
		if got := changes.ConfigValues([]folder.File{{Name: "namespace.yaml"}, {Name: test.file, Content: []byte(test.text)}}); !maps.Equal(
			got,
			test.want,
		) ||
			(got == nil) != (test.want == nil) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestConfigValuesReadsEveryBuiltInTemplate(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../render/testdata/builtin/*/platform-config.*")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if changes.ConfigValues([]folder.File{{Name: filepath.Base(file), Content: content}}) == nil {
			t.Errorf("%s has no values", file)
		}
	}
}

func FuzzConfigValues(f *testing.F) {
	f.Add("platform-config.yaml", []byte("apiVersion: v1\nkind: ConfigMap\ndata:\n  A: \"1\"\n  platform-config.env: \"B=1\"\n"))
	f.Add("platform-config.json", []byte(`{"A":{"B":[1,{"C":null}]}}`))
	f.Add("platform-config.env", []byte("A='x\ny=z'\nB=1\n"))
	f.Add("platform-config.properties", []byte("A=1\nB\\=C=3\n"))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		fleettest.Bounded(t, string(content), func() { changes.ConfigValues([]folder.File{{Name: name, Content: content}}) })
	})
}
