package adopt_test

import (
	"reflect"
	"testing"
)

// TestLetterCaseOfARepositoryIsIgnored adopts a root whose repository is written in other letters than in the options: Git
// hosts take both for the same.
func TestLetterCaseOfARepositoryIsIgnored(t *testing.T) {
	t.Parallel()
	application := func(name, repo, path string) string {
		return `{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "` + name + `", "namespace": "argocd"},
			"spec": {"project": "default", "source": {"repoURL": "` + repo + `", "path": "` + path + `"},
			"destination": {"server": "https://kubernetes.default.svc", "namespace": "` + name + `"}}}`
	}
	adoptWithRoot := func(repo string) any {
		result, _ := adopted(t, map[string]any{
			"root.yaml":     application("root", repo, "apps"),
			"apps/app.yaml": application("shop", "https://git.example.com/other/shop", "."),
		}, map[string]any{"repository": map[string]any{"url": "https://git.example.com/acme/fleet"}})
		return result
	}
	want := adoptWithRoot("https://git.example.com/acme/fleet")
	if got := adoptWithRoot("https://git.example.com/Acme/Fleet.git"); !reflect.DeepEqual(got, want) {
		t.Errorf("adopted %+v, want %+v", got, want)
	}
}
