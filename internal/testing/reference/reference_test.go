package reference_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reference"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reference/settings"
)

var update = flag.Bool("update", false, "write the guides and schemas")

const templates = "../../../templates"

// With -update, the test writes the guides and schemas; `make docs` copies them to docs.
func TestThePublishedReferenceEqualsTheTables(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		filepath.Join("guides", "reference-fleet.md"):    reference.Fleet(),
		filepath.Join("guides", "reference-settings.md"): reference.Settings(settings.Tables()...),
	}
	for name, schema := range reference.Schemas() {
		want[filepath.Join("schemas", name)] = string(schema)
	}
	if *update {
		if err := os.RemoveAll(filepath.Join(templates, "schemas")); err != nil {
			t.Fatal(err)
		}
		for name, content := range want {
			name = filepath.Join(templates, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	published, err := filepath.Glob(filepath.Join(templates, "schemas", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, err := os.ReadFile(filepath.Join(templates, name))
		if err != nil || string(got) != want[name] {
			t.Errorf("%s differs from the tables (%v): run go test ./internal/testing/reference -update, and make docs", name, err)
		}
	}
	if len(published) != len(reference.Schemas()) {
		t.Errorf("got %d published schemas, want %d", len(published), len(reference.Schemas()))
	}
}

func TestSchemasAreSchemas(t *testing.T) {
	t.Parallel()
	schemas := reference.Schemas()
	if len(schemas) != 23 {
		t.Errorf("there are %d schemas", len(schemas))
	}
	for name, schema := range schemas {
		if _, err := jsonschema.CompileString(name, string(schema)); err != nil {
			t.Errorf("%s: %s", name, err)
		}
	}
}

// The YAML in the guide fits the schema named in its first line, and is part of a valid fleet.
func TestTheGuideShowsAFleet(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(reference.Fleet(), "```yaml\n")
	block, _, found := strings.Cut(rest, "```\n")
	first, _, _ := strings.Cut(block, "\n")
	name, named := strings.CutPrefix(first, "# yaml-language-server: $schema="+reference.SchemasURL)
	if !found || !named {
		t.Fatalf("the guide has no YAML with a schema: %q", first)
	}
	schema, err := jsonschema.CompileString(name, string(reference.Schemas()[name]))
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := fleet.ParseYAML(block)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(clusters); err != nil {
		t.Errorf("%#v", err)
	}
	_, findings := fleet.Decode(map[string]any{
		"environment": "dev", "clusters": clusters, "cluster_types": []any{map[string]any{"name": "drone", "environment": "dev"}},
	})
	if len(findings) > 0 {
		t.Error(findings)
	}
}
