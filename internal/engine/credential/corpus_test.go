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

// There is no false alarm on Kalypso's sample, on the samples of clusters, and on the values of charts, whether they are
// given as values or as one text. A Secret that one of the samples has is found.
func TestFindHasNoFalseAlarmOnSamples(t *testing.T) {
	t.Parallel()
	for _, corpus := range []struct {
		folder string
		least  int
		isOf   func(name string) bool
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
				if err != nil || entry.IsDir() || !corpus.isOf(entry.Name()) {
					return err
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				files++
				values := []any{string(text)}
				for _, document := range fleet.SplitYAML(string(text)) {
					if value, err := fleet.ParseLooseYAML(document.Text); err == nil { // templates of charts are no YAML
						values = append(values, value)
					}
				}
				want := ""
				if entry.Name() == "argocd-base.yaml" {
					want = "[0] 35 password, [8].stringData.admin.password 0 password, [8].stringData.server.secretkey 0 password"
				}
				if got := show(credential.Find(values)); got != want {
					t.Errorf("%s: got %q, want %q", path, got, want)
				}
				return nil
			})
			if err != nil || files < corpus.least {
				t.Errorf("%s has %d files, want %d or more: %v", root, files, corpus.least, err)
			}
		})
	}
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json")
}
