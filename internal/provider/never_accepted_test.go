package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestPlanReportsErrorsOfEveryApply(t *testing.T) {
	t.Parallel()
	beside := func(folder string) func(t *testing.T, repo repository) {
		return func(t *testing.T, repo repository) {
			apply(t, providertest.New(startProvider), assigned(repo.url, fleetOf(nil), map[string]any{
				"name": "other", "gitops_repo": map[string]any{"url": repo.url, "branch": "dev", "path": "elsewhere"},
			}))
			repo.change(t, "dev", func(clone string) {
				writeFile(t, filepath.Join(clone, filepath.FromSlash(folder), "file.yaml"), "kind: Other\n")
			})
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, repo repository)
		want    string
	}{
		"a host in other letters":              {beside("clusters/all/Large"), "Large"},
		"a part of the path in other letters":  {beside("Clusters/all/other"), "Clusters"},
		"a deployment target in other letters": {beside("clusters/all/large/App-Core"), "App-Core"},
		"an empty repository of another format": {func(t *testing.T, repo repository) {
			if output, err := exec.Command("git", "init", "--quiet", "--bare", "--object-format=sha256", repo.url).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
		}, "SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			test.prepare(t, repo)
			_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(repo.url, fleetOf(nil), nil))
			if diags.Err() == nil || !words(test.want).MatchString(diags.String()) {
				t.Errorf("got %s, want an error with %s", diags, test.want)
			}
			if _, err := os.Stat(repo.url); err != nil {
				t.Fatal(err)
			}
		})
	}
}
