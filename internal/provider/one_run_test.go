package provider_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// One apply creates clusters, registers them, commits their folders, and installs their agents. One destroy reverts it. The clusters
// are a real API server and a stand-in that accepts everything.
func TestOneApplyOnboardsClustersAndOneDestroyRemovesThem(t *testing.T) {
	acceptancetest.Only(t)
	repo := giteaRepository(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "default", "none") // waits until the API serves the kind
	token := regexp.MustCompile(`token = "(.*)"`).FindStringSubmatch(repo.provider)[1]
	config := strings.ReplaceAll(
		readFile(t, filepath.Join("..", "..", "examples", "onboarding", "one-run", "main.tf")),
		"https://git.example.com/platform/gitops",
		repo.url,
	)
	config = strings.Replace(config, `branch = "prod"`, `branch = "prod-one-run"`, 1)
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TF_VAR_gitops_token", token)
			t.Setenv("TF_VAR_agent_token", token)
			standIn := &standInCluster{}
			url, certificate := standIn.start(t)
			namespace := "one-run-" + name
			own := strings.Replace(config, `  reconciler   = "flux"`, "  reconciler   = \"flux\"\n  namespace    = "+fmt.Sprintf("%q", namespace), 1)
			w := newWorkdir(t, tool, map[string]string{"main.tf": own})
			writeFile(t, filepath.Join(w.path, "berlin.kubeconfig"), server.Kubeconfig())
			writeFile(t, filepath.Join(w.path, "lyon.kubeconfig"), tokenKubeconfig(url, certificate))

			if printed, err := w.runTraced(t, "apply", "apply", "-input=false", "-auto-approve", "-no-color"); err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if printed, err := w.runTraced(t, "again", "plan", "-input=false", "-detailed-exitcode", "-no-color"); err != nil {
				t.Errorf("the second plan is not empty: %v\n%s", err, printed)
			}
			if printed, err := w.runTraced(t, "refreshed", "plan", "-refresh-only", "-input=false", "-detailed-exitcode", "-no-color", "-target=flotilla_agent.store"); err != nil {
				t.Errorf("a refresh alone changes agents: %v\n%s", err, printed)
			}
			root := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster")
			if root == nil || !strings.Contains(fmt.Sprint(root.Object["spec"]), "./clusters/berlin") {
				t.Errorf("got Kustomization %v, want one for the folder of berlin", root)
			}
			standIn.mu.Lock()
			if count := len(standIn.objects); count != 5 {
				t.Errorf("lyon has %d objects, want 5", count)
			}
			standIn.mu.Unlock()
			if tree := git(t, repo.folder, "ls-tree", "-r", "--name-only", "prod-one-run"); !strings.Contains(
				tree,
				"clusters/berlin/checkout-live/reconciler.yaml",
			) ||
				strings.Contains(tree, "clusters/lyon/checkout") {
				t.Errorf("the repository has\n%s", tree)
			}
			checkNoSecrets(t, w.path, map[string]string{"the token": token})

			if printed, err := w.runTraced(t, "destroy", "destroy", "-input=false", "-auto-approve", "-no-color"); err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster") != nil ||
				server.Get(t, "v1", "Secret", namespace, "flotilla-repository") != nil {
				t.Error("berlin still follows its folders")
			}
			if tree := git(t, repo.folder, "ls-tree", "-r", "--name-only", "prod-one-run"); strings.Contains(tree, "checkout") {
				t.Errorf("the repository still has\n%s", tree)
			}
		})
	}
}

// tokenKubeconfig returns the kubeconfig of a cluster that accepts any token.
func tokenKubeconfig(server, certificate string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: a, user: {token: any-token}}]
`, server, base64.StdEncoding.EncodeToString([]byte(certificate)))
}
