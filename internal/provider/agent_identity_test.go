package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// agents are flotilla_agents in one namespace, by the name of the cluster, with the address of each.
func agentsConfiguration(namespace string, addresses map[string]any, further map[string]any) providertest.Configuration {
	configuration := providertest.Configuration{Provider: map[string]any{"clusters": addresses}, Resources: map[string]providertest.Resource{}}
	for cluster := range addresses {
		attributes := agentAttributes(namespace, further)
		attributes["cluster"] = cluster
		configuration.Resources["flotilla_agent."+cluster] = providertest.Resource{Attributes: attributes}
	}
	return configuration
}

// refuses plans and applies, and both must fail with a text.
func expectRefusal(t *testing.T, w *providertest.Workspace, configuration providertest.Configuration, texts ...string) {
	t.Helper()
	_, said := w.Plan(t.Context(), configuration)
	_, alsoSaid := w.Apply(t.Context(), configuration)
	for _, text := range texts {
		if !strings.Contains(said.String(), text) || !strings.Contains(alsoSaid.String(), text) {
			t.Errorf("it has to say %q. The plan says\n%s\nthe apply\n%s", text, said, alsoSaid)
		}
	}
}

const otherAgent = "Cluster has the agent of another cluster"

// labelOf is the cluster whose agent has the objects.
func clusterLabel(t *testing.T, server *kubetest.Server, namespace string) string {
	t.Helper()
	live := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster")
	if live == nil {
		return ""
	}
	return live.GetLabels()["flotilla.dev/cluster"]
}

// Two names for one cluster would have two agents undo what each other applies.
func TestTwoNamesForOneClusterAreErrors(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "two-names"
	here := connectionTo(server)
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	expectRefusal(
		t,
		other,
		agentsConfiguration(namespace, map[string]any{"north": here, "south": here}, nil),
		"Two names for one cluster",
		`reach cluster "north" and cluster "south" by the same address`,
		"Kustomization "+namespace+"/flotilla-cluster",
	)
	if clusterLabel(t, server, namespace) != "" {
		t.Error("something was applied")
	}
	if _, said := w.Apply(t.Context(), agentsConfiguration(namespace, map[string]any{"north": here}, nil)); said.Err() != nil {
		t.Fatal(said)
	}
	// In another state, or by another address, it is found by the label.
	south := agentsConfiguration(namespace, map[string]any{"south": here}, nil)
	expectRefusal(t, other, south, otherAgent, `Kustomization `+namespace+`/flotilla-cluster`, `of the agent of cluster "north"`, "set force = true")
	if got := clusterLabel(t, server, namespace); got != "north" {
		t.Errorf("the objects are of %q", got)
	}
	if _, said := other.Apply(t.Context(), agentsConfiguration(namespace, map[string]any{"south": here}, map[string]any{"force": true})); said.Err() != nil {
		t.Fatal(said)
	}
	if got := clusterLabel(t, server, namespace); got != "south" {
		t.Errorf("after force the objects are of %q", got)
	}
	// The former name cannot take them back, and the removal of its agent leaves them.
	north := agentsConfiguration(namespace, map[string]any{"north": here}, nil)
	expectRefusal(t, w, north, otherAgent, `of the agent of cluster "south"`)
	north.Resources = nil
	_, said := w.Apply(t.Context(), north)
	if want := `Kustomization ` + namespace + `/flotilla-cluster stays: it is of cluster "south" now`; said.Err() != nil ||
		!strings.Contains(said.String(), want) {
		t.Errorf("the destroy says %s", said)
	}
	if got := clusterLabel(t, server, namespace); got != "south" {
		t.Errorf("after the destroy the objects are of %q", got)
	}
	if _, said := other.Apply(t.Context(), south, providertest.Destroy()); said.Err() != nil || len(said) > 0 ||
		clusterLabel(t, server, namespace) != "" {
		t.Errorf("the destroy of the other says %s", said)
	}
}

// A cluster that gets another name in place keeps its objects.
func TestARenamedClusterIsNotAnother(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "renamed"
	named := func(name string, names ...string) providertest.Configuration {
		reach := map[string]any{name: connectionTo(server)}
		for _, other := range names {
			reach[other] = connectionTo(server)
		}
		attributes := agentAttributes(namespace, nil)
		attributes["cluster"] = name
		configuration := onCluster(nil, attributes)
		configuration.Provider["clusters"] = reach
		return configuration
	}
	w := providertest.New(startProvider)
	applyAgent(t, w, named("north"))
	// The destroy of the former name would not reach the cluster, and leave its objects.
	expectRefusal(t, w, named("south"), otherAgent, `of the agent of cluster "north"`)
	applyAgent(t, w, named("south", "north"))
	if got := clusterLabel(t, server, namespace); got != "south" {
		t.Errorf("the objects are of %q", got)
	}
	if _, said := w.Apply(t.Context(), named("south"), providertest.Destroy()); said.Err() != nil || len(said) > 0 {
		t.Errorf("the destroy says %s", said)
	}
}

// Clusters whose addresses are exchanged by mistake would follow each other's folders, with pruning on.
func TestExchangedAddressesAreErrors(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	one, another := kubetest.Start(t, kubetest.Options{Agents: true}), kubetest.StartAnother(t, kubetest.Options{Agents: true})
	const namespace = "exchanged"
	w := providertest.New(startProvider)
	right := agentsConfiguration(namespace, map[string]any{"north": connectionTo(one), "south": connectionTo(another)}, nil)
	if _, said := w.Apply(t.Context(), right); said.Err() != nil {
		t.Fatal(said)
	}
	expectRefusal(t, w, agentsConfiguration(namespace, map[string]any{"north": connectionTo(another), "south": connectionTo(one)}, nil), otherAgent,
		`Cluster "north": `, `of the agent of cluster "south"`, `Cluster "south": `, `of the agent of cluster "north"`)
	if north, south := clusterLabel(t, one, namespace), clusterLabel(t, another, namespace); north != "north" || south != "south" {
		t.Errorf("the objects are of %q and %q", north, south)
	}
	if plan := planAgent(t, w, right); !plan.Empty() {
		t.Error("with the right addresses, the plan is not empty")
	}
	if _, said := w.Apply(t.Context(), right, providertest.Destroy()); said.Err() != nil || len(said) > 0 {
		t.Errorf("the destroy says %s", said)
	}
}
