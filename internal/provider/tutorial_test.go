package provider_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// TestTheFirstClusterIsSetUpAsTheTutorialSays follows the tutorial with a real API server and a real Git host. Flux' controllers do
// not run: the pods are beyond it.
func TestTheFirstClusterIsSetUpAsTheTutorialSays(t *testing.T) {
	acceptancetest.Only(t)
	repo := giteaRepository(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	config := guideExample(t, "first-cluster.md.tmpl", "examples/tutorials/first-cluster/main.tf")
	page := guideText(t, "first-cluster.md.tmpl")
	promises := regexp.MustCompile(`(?m)^(?:    )?\+ "(.*)",$`).FindAllStringSubmatch(page, -1)
	if len(promises) != 4 {
		t.Fatalf("the page shows %d lines of plans", len(promises))
	}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TF_VAR_repository", repo.url)
			t.Setenv("TF_VAR_token", regexp.MustCompile(`token = "(.*)"`).FindStringSubmatch(repo.provider)[1])
			branch := "first-cluster-" + name
			w := newWorkdir(t, tool, map[string]string{"main.tf": strings.Replace(config, `branch = "dev"`, `branch = "`+branch+`"`, 1)})
			writeFile(t, filepath.Join(w.path, "store-1.kubeconfig"), server.Kubeconfig())
			writeFile(t, filepath.Join(w.path, "flux.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n")
			says := func(printed string, lines ...string) {
				t.Helper()
				for _, line := range lines {
					line, _, _ = strings.Cut(line, " ...")
					if !strings.Contains(printed, line) {
						t.Errorf("the plan does not say %s:\n%s", line, printed)
					}
				}
			}
			says(w.run("apply", "-input=false", "-auto-approve", "-no-color"), promises[0][1], promises[1][1])
			if tree := git(t, repo.folder, "ls-tree", "-r", "--name-only", branch); !strings.Contains(tree, "store/podinfo-web/reconciler.yaml") {
				t.Errorf("the branch has\n%s", tree)
			}
			root := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flotilla-cluster-type")
			if root == nil || root.Object["spec"].(map[string]any)["path"] != "./store" {
				t.Errorf("the cluster type's folder is followed by %v", root)
			}
			says(w.run("apply", "-input=false", "-auto-approve", "-no-color", "-var", "message=Good morning"), promises[2][1])
			byHandOn(t, repo.cloneURL, branch, func(folder string) { git(t, folder, "rm", "-q", "store/podinfo-web/reconciler.yaml") })
			says(w.run("apply", "-input=false", "-auto-approve", "-no-color", "-var", "message=Good morning"), promises[3][1])
			w.run("destroy", "-input=false", "-auto-approve", "-no-color")
			if left := git(t, repo.folder, "ls-tree", "-r", "--name-only", branch); strings.Contains(left, "podinfo") {
				t.Errorf("after the destroy, the branch has\n%s", left)
			}
		})
	}
}
