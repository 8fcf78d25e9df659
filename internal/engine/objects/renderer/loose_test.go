package renderer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
)

func TestLooseFilesAreRendered(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	files := map[string]string{
		"base/kustomization.yaml": "resources: [one.yaml]\n",
		"base/one.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n",
		"over/kustomization.yaml": "resources: [../base]\nnamePrefix: an-\n",
		"far/kustomization.yaml":  "resources: ['https://example.com/x']\n",
	}
	loose := &renderer.Loose{}
	render := func(folder string) (*objects.Rendering, error) {
		return loose.Render(t.Context(), files, &objects.Request{Path: folder, Kustomize: &objects.Kustomize{}})
	}
	for range 2 {
		result, err := render("over")
		if err != nil || len(result.Objects) != 1 || result.Objects[0].Name != "an-one" {
			t.Fatal(result, err)
		}
	}
	if _, err := render("far"); err == nil || !strings.HasSuffix(err.Error(), "so take it into the repository") {
		t.Error(err)
	}
	loose.Close()
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("Close leaves %s", left)
	}
	(&renderer.Loose{}).Close()
}
