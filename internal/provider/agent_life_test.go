package provider_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// A recreated cluster has a new identity and no objects.
func TestARecreatedClusterIsOnboardedAgain(t *testing.T) {
	t.Parallel()
	api := &standInCluster{}
	url, certificate := api.start(t)
	w := providertest.New(startProvider)
	configuration := onCluster(
		map[string]any{"host": url + "/a", "cluster_ca_certificate": certificate, "token": "a-token"},
		agentAttributes("flux-system", nil),
	)
	applyAgent(t, w, configuration)
	api.replace()
	plan := applyAgent(t, w, configuration)
	if got := agentLines(plan); !slices.Equal(got, []string{`cluster "edge-1" was replaced by another one: everything is applied again`}) {
		t.Errorf("the plan has %q", got)
	}
	api.mu.Lock()
	if len(api.objects) != 5 {
		t.Errorf("the new cluster has %d objects", len(api.objects))
	}
	api.mu.Unlock()

	// A cluster that is replaced between plan and apply does not change the plan.
	configuration.Resources[agentAddress].Attributes["interval"] = "30s"
	plan = planAgent(t, w, configuration)
	api.replace()
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
		t.Error(diags)
	}
	if plan := planAgent(t, w, configuration); !plan.Empty() {
		t.Errorf("the next plan has %q", agentLines(plan))
	}

	// The objects of the former cluster are not on this one.
	api.replace()
	if _, diags := w.Apply(t.Context(), configuration, providertest.Destroy()); diags.Err() != nil || len(w.State) > 0 {
		t.Errorf("the destroy on a recreated cluster says %s", diags)
	}
}

// The UID of the namespace kube-system identifies a cluster.
func TestAnotherClusterIsNoticedWithoutRightsOnKubeSystem(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: provider-narrow}
rules:
  - {apiGroups: [""], resources: [namespaces], resourceNames: [provider-narrow], verbs: [get, create, patch]}
  - {apiGroups: [""], resources: [secrets], verbs: [get, create, patch, delete]}
  - {apiGroups: [source.toolkit.fluxcd.io, kustomize.toolkit.fluxcd.io], resources: ["*"], verbs: [get, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: provider-narrow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: provider-narrow}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: narrow}]
`
	connect := func(server *kubetest.Server) map[string]any {
		server.Apply(t, rights)
		for kind, version := range map[string]string{"Kustomization": "kustomize.toolkit.fluxcd.io/v1", "GitRepository": "source.toolkit.fluxcd.io/v1"} { // wait until the API serves the kinds
			server.Get(t, version, kind, "default", "none")
		}
		certificate, key := server.ClientCertificate(t, "narrow")
		return map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "client_certificate": certificate, "client_key": key}
	}
	server, another := kubetest.Start(t, kubetest.Options{Agents: true}), kubetest.StartAnother(t, kubetest.Options{Agents: true})
	attributes := agentAttributes("provider-narrow", nil)
	ownCluster, otherCluster := onCluster(connect(server), attributes), onCluster(connect(another), attributes)
	w, others := providertest.New(startProvider), providertest.New(startProvider)
	applyAgent(t, w, ownCluster)
	applyAgent(t, others, otherCluster)

	// The other cluster has an agent of the same name from another state.
	if got := agentLines(planAgent(t, w, otherCluster)); !slices.Equal(
		got,
		[]string{`cluster "edge-1" was replaced by another one: everything is applied again`},
	) {
		t.Errorf("for another cluster, the plan has %q", got)
	}
	if _, diags := w.Apply(t.Context(), otherCluster, providertest.Destroy()); diags.Err() != nil ||
		!strings.Contains(diags.String(), "another cluster has taken its place") {
		t.Errorf("a destroy on another cluster says %s", diags)
	}
	if another.Get(t, "v1", "Secret", "provider-narrow", "flotilla-repository") == nil {
		t.Error("the destroy has removed objects of another state")
	}
	// The identity of the cluster does not depend on the rights.
	if plan := planAgent(t, others, onCluster(connectionTo(another), attributes)); !plan.Empty() {
		t.Errorf("with more rights the plan has %q", agentLines(plan))
	}
	if _, diags := others.Apply(t.Context(), otherCluster, providertest.Destroy()); diags.Err() != nil || len(diags) > 0 ||
		another.Get(t, "v1", "Secret", "provider-narrow", "flotilla-repository") != nil {
		t.Errorf("a destroy on the same cluster says %s", diags)
	}
}

// Flotilla adds a credential to a Secret of the agent's own manifests. No state contains the credential.
func TestACredentialInASecretOfOthersIsNoDrift(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, kind := range []string{"AppProject", "Application"} { // wait until the API serves the kinds
		server.Get(t, "argoproj.io/v1alpha1", kind, "default", "none")
	}
	for name, install := range map[string]any{
		"installed": "apiVersion: v1\nkind: Secret\nmetadata: {name: argocd-notifications-secret}\nstringData: {ours: x}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\n",
		"there":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := providertest.New(startProvider)
			attributes := agentAttributes("provider-notified-"+name, map[string]any{
				"reconciler": "argocd", "install": install, "gitops_repo": map[string]any{"url": "https://git.example.com/platform/gitops", "branch": "dev"}, "feedback": map[string]any{"forge": "gitea"},
				"credentials_wo": map[string]any{"token": "canary-t0ken-4711", "feedback": map[string]any{"token": "canary-t0ken-4715"}},
			})
			applyAgent(t, w, onCluster(connectionTo(server), attributes))
			secret := server.Get(t, "v1", "Secret", "provider-notified-"+name, "argocd-notifications-secret")
			if secret == nil ||
				!strings.Contains(fmt.Sprint(secret.Object["data"]), base64.StdEncoding.EncodeToString([]byte("canary-t0ken-4715"))) {
				t.Errorf("the Secret is %v", secret)
			}
			if state := fmt.Sprint(w.State.Values(agentAddress)); strings.Contains(state, "canary") {
				t.Errorf("the state has a secret: %s", state)
			}
			if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), attributes), providertest.Destroy()); diags.Err() != nil {
				t.Error(diags)
			}
		})
	}
}

// onHub configures a cluster that Argo CD on a hub deploys to. One server is both.
func onHub(server *kubetest.Server, agent map[string]any) providertest.Configuration {
	spoke := connectionTo(server)
	return providertest.Configuration{
		Provider:  map[string]any{"clusters": map[string]any{"hub": connectionTo(server), "edge-1": spoke}},
		Resources: map[string]providertest.Resource{agentAddress: {Attributes: agentAttributes("provider-hub", agent)}},
	}
}

func TestAClusterIsRegisteredAtAHub(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, kind := range []string{"AppProject", "ApplicationSet", "Application"} { // wait until the API serves the kinds
		server.Get(t, "argoproj.io/v1alpha1", kind, "default", "none")
	}
	w := providertest.New(startProvider)
	hub := map[string]any{
		"reconciler": "argocd-hub", "hub": "hub", "environment": "dev",
		"credentials_wo": map[string]any{"token": "canary-t0ken-4711", "registration": map[string]any{"token": "canary-t0ken-4714"}},
	}
	plan := applyAgent(t, w, onHub(server, hub))
	if got := strings.Join(agentLines(plan), "\n"); !strings.Contains(
		got,
		"ApplicationSet provider-hub/flotilla-dev-edge on the hub is applied",
	) {
		t.Errorf("the plan has\n%s", got)
	}
	secret := server.Get(t, "v1", "Secret", "provider-hub", "flotilla-dev-clusters-edge-1")
	if secret == nil || secret.GetLabels()["argocd.argoproj.io/secret-type"] != "cluster" ||
		!strings.Contains(decodeSecret(t, secret, "config"), "canary-t0ken-4714") ||
		decodeSecret(t, secret, "server") != server.Host {
		t.Errorf("the hub registers the cluster by %v", secret)
	}
	if state := fmt.Sprint(w.State.Values(agentAddress)); strings.Contains(state, "canary") {
		t.Errorf("the state has a secret: %s", state)
	}

	// An unconfigured hub is an error. An unreachable hub is not.
	configuration := onHub(server, hub)
	delete(configuration.Provider["clusters"].(map[string]any), "hub")
	_, diags := w.Plan(t.Context(), configuration)
	if diags.Err() == nil || diags[0].At != `AttributeName("hub")` {
		t.Errorf("for an unconfigured hub, got %s", diags)
	}
	configuration.Provider["clusters"].(map[string]any)["hub"] = map[string]any{"host": "https://127.0.0.1:1", "token": "x"}
	if plan, diags := w.Plan(t.Context(), configuration); diags.Err() != nil || !plan.Empty() ||
		!strings.Contains(diags.String(), `Cluster "hub": the API server cannot be reached`) {
		t.Errorf("for an unreachable hub, got %s", diags)
	}
	// Only the hub has to reach the cluster.
	configuration = onHub(server, hub)
	configuration.Provider["clusters"].(map[string]any)["edge-1"] = map[string]any{"host": "https://edge-1.invalid", "token": "x"}
	plan = applyAgent(t, w, configuration)
	if got := agentLines(plan); len(got) != 1 || !strings.HasPrefix(got[0], "Secret provider-hub/flotilla-dev-clusters-edge-1 on the hub: ") {
		t.Errorf("the plan has %q", got)
	}
	delete(configuration.Provider["clusters"].(map[string]any), "edge-1")
	if _, diags := w.Plan(t.Context(), configuration); diags.Err() == nil || diags[0].At != `AttributeName("registration")` {
		t.Errorf("for a cluster without an address, got %s", diags)
	}
	if _, diags := w.Apply(t.Context(), onHub(server, hub), providertest.Destroy()); diags.Err() != nil {
		t.Fatal(diags)
	}
	if server.Get(t, "v1", "Secret", "provider-hub", "flotilla-dev-clusters-edge-1") != nil ||
		server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", "provider-hub", "flotilla-dev-edge") != nil {
		t.Error("the hub still has the cluster")
	}
}

// TestAgentsConvergeThroughTheProvider plays random sequences of edits, deletions, conflicting managers, lost states, changed
// settings and destroys. The next apply must converge or name the conflicting manager. `make acceptance` plays six times as
// many.
func TestAgentsConvergeThroughTheProvider(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "default", "none") // wait until the API serves the kinds
	seed := uint64(time.Now().UnixNano())
	sequences := uint64(acceptancetest.Count(2, 12))
	for number := range sequences {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, number))
			namespace := fmt.Sprintf("provider-sequence-%d", number)
			w := providertest.New(startProvider)
			attributes := agentAttributes(namespace, nil)
			roots := server.Client().
				Resource(schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}).
				Namespace(namespace)
			var history []string
			conflicting := false
			for range 8 {
				switch step := random.IntN(6); step {
				case 0, 1:
					patch, manager := types.MergePatchType, "kubectl-edit"
					content := `{"spec":{"interval":"99m0s"}}`
					options := metav1.PatchOptions{FieldManager: manager}
					if step == 1 {
						patch = types.ApplyPatchType
						content = `{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"flotilla-cluster"},"spec":{"interval":"98m0s"}}`
						options = metav1.PatchOptions{FieldManager: "another", Force: new(true)}
					}
					if conflicting || server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster") == nil {
						continue
					}
					history = append(history, "changed by "+options.FieldManager)
					if _, err := roots.Patch(t.Context(), "flotilla-cluster", patch, []byte(content), options); err != nil {
						t.Fatal(err)
					}
					conflicting = step == 1
				case 2:
					history = append(history, "deleted by hand")
					server.Delete(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster")
					conflicting = false
				case 3:
					history = append(history, "state lost")
					w.Lose(agentAddress)
				case 4:
					history = append(history, "other settings")
					attributes["interval"] = fmt.Sprintf("%dm", 1+random.IntN(50))
					attributes["cluster_type"] = []string{"edge", "store"}[random.IntN(2)]
				case 5:
					if conflicting || w.State[agentAddress].Current == nil {
						continue
					}
					history = append(history, "destroyed")
					if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), attributes), providertest.Destroy()); diags.Err() != nil {
						t.Fatalf("%v: %s", history, diags)
					}
				}
				plan, diags := w.Apply(t.Context(), onCluster(connectionTo(server), attributes))
				history = append(history, fmt.Sprintf("applied: %q", agentLines(plan)))
				if conflicting {
					if diags.Err() == nil ||
						!strings.Contains(diags.String(), `Kustomization `+namespace+`/flotilla-cluster: spec.interval is managed by "another"`) ||
						diags.Bugs() != nil {
						t.Fatalf("%v: %s", history, diags)
					}
					continue
				}
				if diags.Err() != nil {
					t.Fatalf("%v: %s", history, diags)
				}
				if again := planAgent(t, w, onCluster(connectionTo(server), attributes)); !again.Empty() {
					t.Fatalf("%v: the next plan has %q", history, agentLines(again))
				}
			}
		})
	}
}

// decodeSecret returns the value of a key.
func decodeSecret(t *testing.T, secret *unstructured.Unstructured, key string) string {
	t.Helper()
	text, _, _ := unstructured.NestedString(secret.Object, "data", key)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
