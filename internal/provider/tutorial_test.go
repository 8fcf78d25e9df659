package provider_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/prometheustest"
)

// TestTheFirstClusterIsSetUpAsTheTutorialSays follows the tutorial with a real API server and a real Git host. Flux does not run, so the
// test cannot check pods.
func TestTheFirstClusterIsSetUpAsTheTutorialSays(t *testing.T) {
	acceptancetest.Only(t)
	repo := giteaRepository(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	config := guideExample(t, "first-cluster.md.tmpl", "examples/tutorials/first-cluster/main.tf")
	page := guideText(t, "first-cluster.md.tmpl")
	promises := regexp.MustCompile(`(?m)^(?:    )?\+ "(.*)",$`).FindAllStringSubmatch(page, -1)
	if len(promises) != 4 {
		t.Fatalf("the page shows %d lines of plans, want 4", len(promises))
	}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TF_VAR_repository", repo.url)
			t.Setenv("TF_VAR_token", regexp.MustCompile(`token = "(.*)"`).FindStringSubmatch(repo.provider)[1])
			branch := "first-cluster-" + name
			w := newWorkdir(t, tool, map[string]string{"main.tf": strings.Replace(config, `branch = "dev"`, `branch = "`+branch+`"`, 1)})
			writeFile(t, filepath.Join(w.path, "store-1.kubeconfig"), server.Kubeconfig())
			writeFile(t, filepath.Join(w.path, "flux.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n# A long text.\n")
			requireLines := func(printed string, lines ...string) {
				t.Helper()
				for _, line := range lines {
					line, _, _ = strings.Cut(line, " ...")
					if !strings.Contains(printed, line) {
						t.Errorf("the plan does not say %s:\n%s", line, printed)
					}
				}
			}
			output := w.run("apply", "-input=false", "-auto-approve", "-no-color")
			requireLines(output, promises[0][1], promises[1][1])
			if strings.Contains(output, "A long text.") {
				t.Errorf("the plan repeats the agent's manifests:\n%s", output)
			}
			if tree := git(t, repo.folder, "ls-tree", "-r", "--name-only", branch); !strings.Contains(tree, "store/podinfo-web/reconciler.yaml") {
				t.Errorf("the branch has\n%s", tree)
			}
			root := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flotilla-cluster-type")
			if root == nil || root.Object["spec"].(map[string]any)["path"] != "./store" {
				t.Errorf("the Kustomization of the cluster type is %v", root)
			}
			t.Setenv("TF_VAR_message", "Good morning")
			requireLines(w.run("apply", "-input=false", "-auto-approve", "-no-color"), promises[2][1])
			commitByHand(t, repo.cloneURL, branch, func(folder string) {
				removeAll(t, filepath.Join(folder, "store", "podinfo-web", "reconciler.yaml"))
			})
			requireLines(w.run("apply", "-input=false", "-auto-approve", "-no-color"), promises[3][1])
			w.run("destroy", "-input=false", "-auto-approve", "-no-color")
			if left := git(t, repo.folder, "ls-tree", "-r", "--name-only", branch); strings.TrimSpace(left) != "store/dev.md" {
				t.Errorf("after the destroy, the branch has\n%s", left)
			}
		})
	}
}

// TestTheRingsAreFollowedAsTheTutorialSays follows the tutorial with a real Prometheus and a soak time of a second. It ends with the
// failure: tests of rollouts cover the rollback five minutes later.
func TestTheRingsAreFollowedAsTheTutorialSays(t *testing.T) {
	acceptancetest.Only(t)
	examples := filepath.Join("..", "..", "examples", "tutorials", "rings")
	rules, settings := readFile(t, filepath.Join(examples, "requests.yml")), readFile(t, filepath.Join(examples, "prometheus.yml"))
	failing := regexp.MustCompile(`(?m)^echo '(.*)' >> requests.yml$`).FindStringSubmatch(guideText(t, "rings.md.tmpl"))[1]
	config := guideExample(t, "rings.md.tmpl", "examples/tutorials/rings/main.tf")
	prometheus := func(rules string) string {
		folder := t.TempDir()
		writeFile(t, filepath.Join(folder, "requests.yml"), rules)
		return strings.Replace(config, "http://127.0.0.1:9090", prometheustest.Start(t, folder, settings).URL, 1)
	}
	healthy, failed := prometheus(rules), prometheus(rules+failing+"\n")
	t.Setenv("TF_VAR_soak", "1s")
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorkdir(t, tool, map[string]string{"main.tf": healthy})
			applyUntil := func(want string) {
				t.Helper()
				parts := strings.Split(strings.Trim(strings.ReplaceAll(want, `\"`, `"`), `+ ",`), "...")
				for i, part := range parts {
					parts[i] = regexp.QuoteMeta(part)
				}
				pattern := regexp.MustCompile(strings.Join(parts, ".*"))
				var printed string
				for range 30 {
					printed = w.run("apply", "-input=false", "-auto-approve", "-no-color")
					printed = strings.Join(strings.Fields(strings.NewReplacer(`\"`, `"`, "│", "").Replace(printed)), " ")
					if pattern.MatchString(printed) {
						return
					}
					time.Sleep(2 * time.Second)
				}
				t.Fatalf("no apply prints %s; the last one prints %s", want, printed)
			}
			applyUntil(textListing(t, "", "guides/rings/3-roll-out-the-first-release"))
			applyUntil(`at stage 2 of 3 "early", on 2 of 4 hosts`)
			applyUntil(`at stage 3 of 3 "all", on 3 of 4 hosts`)
			applyUntil(`at stage 3 of 3 "all", on 4 of 4 hosts`)
			applyUntil("No changes.")
			t.Setenv("TF_VAR_release", "v1.5.0")
			writeFile(t, filepath.Join(w.path, "main.tf"), failed)
			applyUntil(textListing(t, "", "guides/rings/4-see-a-release-fail"))
			released := git(t, filepath.Join(w.path, "gitops.git"), "grep", "--name-only", "v1.5.0", "prod", "--", "*.yaml")
			if strings.TrimSpace(released) != "prod:canary/payments-live/reconciler.yaml" {
				t.Errorf("the release is on\n%s", released)
			}
		})
	}
}
