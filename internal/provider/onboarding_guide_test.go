package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

const onboardingGuide = "clusters.md.tmpl"

// Tests assert each statement of the guide on onboarding about Flotilla. The behaviour of clouds and agents is not tested:
//
//   - Azure, Amazon, Google, Feedback, A hub: onboarding_clouds_unix_test.go, with stand-ins for clouds; names on a hub:
//     onboarding_tables_test.go; texts of statuses: agent/feedback_test.go and e2e/feedback_test.go.
//   - The whole configuration: one_run_test.go.
//   - Cycles: onboarding_cycle_test.go.
//   - Objects on a cluster: agent/guide_test.go, agent/install_test.go, onboarding/apply_test.go (stages), onboarding_tables_test.go
//     (unknown kinds), onboarding/wait_test.go and observe/hub_test.go (no folder yet).
//   - Credentials: onboarding_tables_test.go, agent_test.go (versions), one_run_test.go (neither in state nor in plan).
//   - Unreachable clusters: examples_test.go, onboarding_clouds_unix_test.go (Arc).
//   - Drift, and fields of others: this file, agent_life_test.go (recreated clusters), onboarding/apply_test.go (fields, conflicts).
//   - Leaving: this file, onboarding/remove_test.go, hub_test.go and reconciled_test.go, e2e/onboarding_test.go (namespaces, with
//     agents), e2e/hub_gone_test.go (a lost cluster behind a hub).
//   - Another reconciler: reconciler_change_test.go (the warning), e2e/another_reconciler_test.go (the commands).

// TestOneApplyOnboardsClustersAndOneDestroyRemovesThem applies the guide's whole HCL.
func TestTheGuideOnOnboardingIsRightAboutDriftAndLeaving(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			namespace := "guide-" + name
			const provider = "provider \"flotilla\" {\n  clusters = { east = { kubeconfig = file(\"east.kubeconfig\") } }\n}\n"
			agent := func(further string) string {
				return fmt.Sprintf("resource \"flotilla_agent\" \"east\" {\n  cluster = \"east\"\n  cluster_type = \"store\"\n  namespace = %q\n"+
					"  gitops_repo = { url = \"https://git.example.com/gitops\", branch = \"prod\" }\n  credentials_wo = { token = \"x\" }\n  credentials_wo_version = 1\n  %s\n}\n", namespace, further)
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + provider + agent("")})
			configure := func(parts ...string) {
				writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+strings.Join(parts, ""))
			}
			setReachable := func(isReachable bool) {
				text := server.Kubeconfig()
				if !isReachable {
					text = tokenKubeconfig("https://127.0.0.1:1", server.CA)
				}
				writeFile(t, filepath.Join(w.path, "east.kubeconfig"), text)
			}
			normalize := func(text string) string {
				return strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(text)), " ")
			}
			run := func(wantSuccess bool, want string, arguments ...string) {
				t.Helper()
				stdout, stderr, err := w.try(append(arguments, "-input=false", "-no-color")...)
				if (err == nil) != wantSuccess || !strings.Contains(normalize(stdout+stderr), want) {
					t.Fatalf("%s: %v, without %q:\n%s%s", strings.Join(arguments, " "), err, want, stdout, stderr)
				}
			}
			hasSecret := func() bool { return server.Get(t, "v1", "Secret", namespace, "flotilla-repository") != nil }
			const leftover = "Secret guide-"

			setReachable(true)
			run(true, "Apply complete!", "apply", "-auto-approve")
			run(true, "No changes", "plan", "-refresh-only", "-detailed-exitcode")

			// A plan names a suspended Kustomization in changes, and the next apply resumes it.
			kustomizations := server.Client().
				Resource(schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}).
				Namespace(namespace)
			if _, err := kustomizations.Patch(t.Context(), "flotilla-cluster", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
				t.Fatal(err)
			}
			run(true, `/flotilla-cluster: spec.suspend changed, by \"kubectl-edit\"`, "plan")
			run(true, "Apply complete!", "apply", "-auto-approve")
			if live := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster"); live.Object["spec"].(map[string]any)["suspend"] != nil {
				t.Errorf("the Kustomization is still suspended: %v", live.Object["spec"])
			}

			// An unreachable cluster fails a destroy, but no plan. The agent stays in the state.
			setReachable(false)
			run(true, "No changes", "plan", "-detailed-exitcode")
			run(false, `on_unreachable = "forget"`, "destroy", "-auto-approve")
			if !strings.Contains(w.run("state", "list"), "flotilla_agent.east") || !hasSecret() {
				t.Error("the agent is not in the state any more, or not on the cluster")
			}

			// A removed block with destroy = false leaves the agent on the cluster.
			configure(provider, "removed {\n  from = flotilla_agent.east\n  lifecycle {\n    destroy = false\n  }\n}\n")
			w.run("apply", "-input=false", "-auto-approve")
			if strings.Contains(w.run("state", "list"), "flotilla_agent.east") || !hasSecret() {
				t.Error("the agent is still in the state, or not on the cluster any more")
			}

			// on_unreachable = "forget", applied before the destroy, turns the error into a warning.
			setReachable(true)
			configure(provider, agent(`on_unreachable = "forget"`))
			run(true, "Apply complete!", "apply", "-auto-approve")
			setReachable(false)
			run(true, leftover, "destroy", "-auto-approve")
			if strings.Contains(w.run("state", "list"), "flotilla_agent.east") || !hasSecret() {
				t.Error("the agent is still in the state, or not on the cluster any more")
			}

			// An agent whose cluster is no longer in the provider's clusters leaves the state with that warning.
			setReachable(true)
			configure(provider, agent(""))
			run(true, "Apply complete!", "apply", "-auto-approve")
			configure()
			run(true, leftover, "apply", "-auto-approve")
			if strings.Contains(w.run("state", "list"), "flotilla_agent.east") || !hasSecret() {
				t.Error("the agent is still in the state, or not on the cluster any more")
			}

			// By default, a destroy deletes the credentials and keeps the namespace. A change of on_destroy without an apply before the
			// destroy has no effect.
			install := fmt.Sprintf("install = \"{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\"\n", namespace+"-made")
			inOwnNamespace := func(further string) string {
				return strings.ReplaceAll(
					agent(install+further),
					fmt.Sprintf("namespace = %q", namespace),
					fmt.Sprintf("namespace = %q", namespace+"-made"),
				)
			}
			hasNamespace := func() bool {
				live := server.Get(t, "v1", "Namespace", "", namespace+"-made")
				return live != nil && live.GetDeletionTimestamp() == nil
			}
			configure(provider, inOwnNamespace(""))
			run(true, "Apply complete!", "apply", "-auto-approve")
			configure(provider, inOwnNamespace(`on_destroy = "delete"`))
			run(true, "Destroy complete!", "destroy", "-auto-approve")
			if server.Get(t, "v1", "Secret", namespace+"-made", "flotilla-repository") != nil || !hasNamespace() {
				t.Error("the credentials are still there, or the namespace is not")
			}
			// With "delete", a destroy also deletes the namespace if install created it.
			server.Delete(t, "v1", "Namespace", "", namespace+"-made")
			run(true, "Apply complete!", "apply", "-auto-approve")
			run(true, "Destroy complete!", "destroy", "-auto-approve")
			if hasNamespace() {
				t.Error("the namespace of the agent stays")
			}
		})
	}
}
