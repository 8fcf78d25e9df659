package renderer_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
)

// TestChartsOfOthersHaveNoCredentials expects no false alarm in the final objects of published charts and kustomizations, with
// all their value files. It skips Secrets, because they are refused as a whole. `make test` renders only podinfo.
func TestChartsOfOthersHaveNoCredentials(t *testing.T) {
	t.Parallel()
	rendered := 0
	count := func(source string, result *objects.Rendering) {
		for _, o := range result.Objects {
			var object map[string]any
			if err := yaml.Unmarshal(o.YAML, &object); err != nil {
				t.Fatal(err)
			}
			if secret.IsSecret(object) {
				continue
			}
			rendered++
			for _, found := range credential.Find(object) {
				t.Errorf("%s: %s %q: %s (rule %s)", source, o.Kind, o.Name, found.Path, found.Rule)
			}
		}
	}
	archives := objectstest.NewArchives(t)
	eachFolderOfOthers(t, "helm", func(t *testing.T, folder string) {
		charts, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
		if err != nil || len(charts) == 0 {
			t.Fatalf("%d charts, %v", len(charts), err)
		}
		for _, file := range charts {
			chart := filepath.Dir(file)
			if !acceptancetest.All() && filepath.Base(chart) != "podinfo" {
				continue
			}
			shipped := archives.Add(shop, objectstest.Folder(t, chart))
			for _, values := range valueFiles(t, chart) {
				request := objects.Request{
					Artifact:          shipped,
					Namespace:         "tills",
					KubernetesVersion: "1.34",
					Helm:              &objects.Helm{ReleaseName: "eu", Namespace: "tills"},
				}
				if values != "" {
					request.Helm.ValueFiles = []string{values}
				}
				// TestChartsAreRenderedAsByHelm checks the errors.
				if result, err := renderer.InProcess(archives).Render(t.Context(), &request); err == nil {
					count(filepath.Base(chart)+" "+values, result)
				}
			}
		}
	})
	eachFolderOfOthers(t, "kustomize", func(t *testing.T, folder string) {
		all := archives.Add(shop, objectstest.Folder(t, folder))
		err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != "kustomization.yaml" {
				return err
			}
			name, err := filepath.Rel(folder, filepath.Dir(file))
			if err != nil || !acceptancetest.All() && !strings.HasPrefix(name, "podinfo") {
				return err
			}
			request := objects.Request{Artifact: all, Path: filepath.ToSlash(name), Namespace: "default", Kustomize: &objects.Kustomize{}}
			if result, err := renderer.InProcess(archives).Render(t.Context(), &request); err == nil {
				count(filepath.ToSlash(name), result)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d objects", rendered)
}
