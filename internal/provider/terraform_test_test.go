package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerraformTestWorksAsTheGuideShows runs the guide's test with mocked reports: it passes, and fails with a wrong assertion.
func TestTerraformTestWorksAsTheGuideShows(t *testing.T) {
	t.Parallel()
	const name = "tests/failed.tftest.hcl"
	for _, tool := range acceptanceTools(t) {
		t.Run(filepath.Base(tool), func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("..", "..", "examples", "observing", "checks")
			configuration := files(t, folder)
			configuration["versions.tf"] = requiredProviders
			w := newWorkdir(t, tool, configuration)
			shown, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(w.path, "tests"), 0o750); err != nil {
				t.Fatal(err)
			}
			for text, passes := range map[string]bool{
				string(shown): true,
				strings.ReplaceAll(string(shown), "failed = 1", "failed = 0"): false,
			} {
				writeFile(t, filepath.Join(w.path, filepath.FromSlash(name)), text)
				stdout, stderr, err := w.try("test", "-no-color")
				if (err == nil) != passes {
					t.Errorf("got error %v, want success %t\n%s%s", err, passes, stdout, stderr)
				}
			}
		})
	}
}
