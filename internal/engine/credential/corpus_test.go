package credential_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Find has no false alarm on the samples of Kalypso and of clusters, nor on the values of charts, as values or as one text. It
// finds the Secret in one of the samples.
func TestFindHasNoFalseAlarmOnSamples(t *testing.T) {
	t.Parallel()
	for _, corpus := range []struct {
		folder   string
		minFiles int
		isSample func(name string) bool
	}{
		{"kalypso", 20, isYAML},
		{"samples", 20, isYAML},
		{"charts", 20, func(name string) bool { return name == "values.yaml" }},
	} {
		t.Run(corpus.folder, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join("..", "..", "..", "..", "shared", corpus.folder)
			if _, err := os.Stat(root); err != nil {
				t.Skipf("shared/%s is absent", corpus.folder)
			}
			files := 0
			err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || !corpus.isSample(entry.Name()) {
					return err
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				files++
				values := []any{string(text)}
				for _, document := range fleet.SplitYAML(string(text)) {
					if value, err := fleet.ParseLooseYAML(document.Text); err == nil { // templates of charts are not YAML
						values = append(values, value)
					}
				}
				want := ""
				if entry.Name() == "argocd-base.yaml" {
					want = "[0] 35 password, [8].stringData.admin.password 0 password, [8].stringData.server.secretkey 0 password"
				}
				if got := formatMatches(credential.Find(values)); got != want {
					t.Errorf("%s: got %q, want %q", path, got, want)
				}
				return nil
			})
			if err != nil || files < corpus.minFiles {
				t.Errorf("%s has %d files, want %d or more: %v", root, files, corpus.minFiles, err)
			}
		})
	}
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json")
}
