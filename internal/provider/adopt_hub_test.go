package provider_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// setsOfAHub are ApplicationSets of the hub in the guide, one for the clusters with a label and one for all.
const setsOfAHub = `
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  generators: [{clusters: {selector: {matchLabels: {env: prod}}}}]
  template:
    metadata: {name: "{{name}}-web"}
    spec: {project: default, source: {repoURL: "https://git.example.com/web", path: ".", targetRevision: v1}, destination: {server: "{{server}}", namespace: web}}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: metrics, namespace: argocd}
spec:
  generators: [{clusters: {}}]
  template:
    metadata: {name: "{{name}}-metrics"}
    spec: {project: default, source: {repoURL: "https://git.example.com/metrics", path: ".", targetRevision: v1}, destination: {name: "{{name}}", namespace: metrics}}
`

// TestTheGuideOnAdoptingIsRightAboutTheFoldersOfAHub adopts ApplicationSets with the guide's list of clusters: each cluster has a
// folder, and so has the hub.
func TestTheGuideOnAdoptingIsRightAboutTheFoldersOfAHub(t *testing.T) {
	t.Parallel()
	clusters := readFile(t, "../../examples/adopting/hub/clusters.json")
	documents := map[string]any{"clusters/central/all.yaml": setsOfAHub, "clusters.json": clusters}
	value, err := evaluateAdopt(t, "prod", documents, map[string]any{"hosts": "clusters/{cluster_type}"})
	if err != nil {
		t.Fatal(err)
	}
	adopted := value.(map[string]any)["fleet"].(map[string]any)
	names := func(key string) (names []string) {
		for _, one := range adopted[key].([]any) {
			names = append(names, fmt.Sprint(one.(map[string]any)["name"]))
		}
		return names
	}
	for key, want := range map[string][]string{
		"cluster_types": {"central", "store-1", "store-2"}, "clusters": {"store-1", "store-2"}, "workloads": {"metrics", "web"},
	} {
		if got := names(key); !slices.Equal(got, want) {
			t.Errorf("%s are %q, want %q", key, got, want)
		}
	}
}

// TestTheGuideOnAdoptingNamesTheAgentsOfAHub compares the table with the example, which TestAHubIsTakenOver applies.
func TestTheGuideOnAdoptingNamesTheAgentsOfAHub(t *testing.T) {
	t.Parallel()
	const head = "folders | contain | `reconciler` | `cluster`, `cluster_type` | `hub` | `name`"
	agents := strings.Split(readFile(t, "../../examples/adopting/hub/takeover.tf"), "resource \"flotilla_agent\"")[1:]
	rows := guideTableOf(t, "adopting.md", head).rows
	if len(rows) != len(agents) {
		t.Fatalf("the table has %d rows, and the example %d agents", len(rows), len(agents))
	}
	for i, row := range rows {
		cells := strings.Split(strings.ReplaceAll(row, "`", ""), " | ")
		name, _, _ := strings.Cut(cells[5], ",")
		for attribute, want := range map[string]string{"reconciler": cells[2], "hub": cells[4], "name": strings.TrimSpace(name)} {
			_, got, _ := strings.Cut(agents[i], "\n  "+attribute+" ")
			if got, _, _ = strings.Cut(strings.TrimLeft(got, " =\""), "\""); got != want && (got != "" || want != "unset") {
				t.Errorf("%s of %s is %q in the example, and %q in the table", attribute, cells[3], got, want)
			}
		}
	}
}

// TestAnExistingSecretOfAHubIsUsed onboards clusters that Secrets register at their hub, as the guide on adopting does.
func TestAnExistingSecretOfAHubIsUsed(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, kind := range []string{"AppProject", "ApplicationSet", "Application"} { // the API knows the kinds by then
		server.Get(t, "argoproj.io/v1alpha1", kind, "default", "none")
	}
	const namespace = "provider-existing"
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	secret := func(name, cluster string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData: {name: %s, server: "https://10.0.0.1", config: '{"bearerToken": "canary-t0ken-4715"}'}
`, name, namespace, cluster)
	}
	configuration := func(registration map[string]any) providertest.Configuration {
		made := onHub(server, anAgent(namespace, map[string]any{
			"reconciler": "argocd-hub", "hub": "hub", "environment": "dev", "registration": registration,
		}))
		made.Provider["clusters"] = map[string]any{"hub": theCluster(server)} // Flotilla does not reach the cluster
		made.Resources["flotilla_agent.hub"] = providertest.Resource{Attributes: anAgent(namespace, map[string]any{
			"cluster": "hub", "cluster_type": "central", "reconciler": "argocd", "name": "central",
		})}
		return made
	}
	of := configuration(map[string]any{"secret": "cluster-edge-1"})
	w := providertest.New(startProvider)
	const summary = "Cluster is not registered at the hub"
	plan, said := w.Plan(t.Context(), of)
	if said.Err() != nil || !said.Has(summary) || !strings.Contains(said.String(), "cluster-edge-1 on the hub does not exist") {
		t.Fatalf("of a Secret that does not exist, the plan says %s", said)
	}
	if said := w.ApplyPlan(t.Context(), plan); said.Err() == nil || !said.Has(summary) {
		t.Errorf("of a Secret that does not exist, the apply says %s", said)
	}
	server.Apply(t, secret("cluster-edge-2", "edge-2"))
	_, said = w.Plan(t.Context(), configuration(map[string]any{"secret": "cluster-edge-2"}))
	if at := slices.IndexFunc(said, func(one providertest.Diagnostic) bool { return one.Error }); at < 0 ||
		said[at].At != `AttributeName("registration")` || !strings.Contains(said.String(), `registers another cluster, with the name "edge-2"`) {
		t.Errorf("of the Secret of another cluster, the plan says %s", said)
	}
	if _, said := w.Plan(t.Context(), configuration(map[string]any{"secret": "cluster-edge-1", "server": "https://10.0.0.1"})); said.Err() == nil ||
		!strings.Contains(said.String(), "registration.secret cannot be set together with other attributes") {
		t.Errorf("of two ways, the plan says %s", said)
	}

	before := server.Apply(t, secret("cluster-edge-1", "edge-1"))[0]
	plan = appliedAgent(t, w, of)
	if lines := agentLines(plan); !slices.Contains(lines, "Secret "+namespace+"/cluster-edge-1 on the hub is applied") {
		t.Errorf("the plan has %q", lines)
	}
	check := func(labels ...string) {
		t.Helper()
		live := server.Get(t, "v1", "Secret", namespace, "cluster-edge-1")
		if live == nil || live.GetUID() != before.GetUID() || !reflect.DeepEqual(live.Object["data"], before.Object["data"]) {
			t.Fatalf("the Secret is %v", live)
		}
		got := slices.Sorted(maps.Keys(live.GetLabels()))
		if want := append([]string{"argocd.argoproj.io/secret-type"}, labels...); !slices.Equal(got, want) {
			t.Errorf("the Secret has the labels %q, want %q", got, want)
		}
	}
	check("flotilla.dev/agent", "flotilla.dev/cluster", "flotilla.dev/cluster-type", "flotilla.dev/environment")
	if server.Get(t, "v1", "Secret", namespace, "flotilla-dev-clusters-edge-1") != nil {
		t.Error("a second Secret registers the cluster")
	}
	if state := fmt.Sprint(w.State.Values(theAgent)); strings.Contains(state, "canary") {
		t.Errorf("the state has a secret in it: %s", state)
	}
	if _, said := w.Apply(t.Context(), of, providertest.Destroy()); said.Err() != nil ||
		!strings.Contains(said.String(), "keeps the labels by which the hub deploys to the cluster") {
		t.Errorf("the destroy says %s", said)
	}
	check("flotilla.dev/cluster", "flotilla.dev/cluster-type", "flotilla.dev/environment")
}
