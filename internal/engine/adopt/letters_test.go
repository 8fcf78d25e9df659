package adopt_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestLetterCaseOfARepositoryIsIgnored adopts a root. Its repository has another letter case than the options, which Git hosts
// ignore.
func TestLetterCaseOfARepositoryIsIgnored(t *testing.T) {
	t.Parallel()
	application := func(name, repo, path string) string {
		return `{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "` + name + `", "namespace": "argocd"},
			"spec": {"project": "default", "source": {"repoURL": "` + repo + `", "path": "` + path + `"},
			"destination": {"server": "https://kubernetes.default.svc", "namespace": "` + name + `"}}}`
	}
	adoptWithRoot := func(repo string) any {
		result, _ := adoptAndRender(t, map[string]any{
			"root.yaml":     application("root", repo, "apps"),
			"apps/app.yaml": application("shop", "https://git.example.com/other/shop", "."),
		}, map[string]any{"repository": map[string]any{"url": "https://git.example.com/acme/fleet"}})
		return result
	}
	want := adoptWithRoot("https://git.example.com/acme/fleet")
	if got := adoptWithRoot("https://git.example.com/Acme/Fleet.git"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestPoliciesSelectByLabelsOfApplicationSets selects the same cluster by three labels.
func TestPoliciesSelectByLabelsOfApplicationSets(t *testing.T) {
	t.Parallel()
	const version = "argocd.argoproj.io/kubernetes-version: "
	for selector, want := range map[string]string{
		"matchLabels: {tier: edge}":                                                                    "tier",
		"matchExpressions: [{key: zone, operator: In, values: [a]}]":                                   "zone",
		"matchExpressions: [{key: argocd.argoproj.io/kubernetes-version, operator: In, values: [v1]}]": "argocd.argoproj.io/kubernetes-version",
	} {
		result, _ := adoptAndRender(t, map[string]any{
			"clusters.yaml": fmt.Sprintf(clusterSecret, "one", "https://one.example.com", version+"v1, tier: edge, zone: a") +
				fmt.Sprintf(clusterSecret, "two", "https://two.example.com", version+"v2, tier: core, zone: b"),
			"web.yaml": fmt.Sprintf(applicationSet, "generators: [{clusters: {selector: {"+selector+"}}}]", "{{name}}-web", "web", "name: '{{name}}'"),
		}, nil)
		policies := fmt.Sprint(result.Fleet["target_policies"])
		if !strings.Contains(policies, "match_labels:map["+want+":") {
			t.Errorf("%s: got policies %s, want a selector by %s", selector, policies, want)
		}
	}
}
