package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// agentsConfiguration has one flotilla_agent in the namespace for each cluster of addresses.
func agentsConfiguration(namespace string, addresses map[string]any, further map[string]any) providertest.Configuration {
	configuration := providertest.Configuration{Provider: map[string]any{"clusters": addresses}, Resources: map[string]providertest.Resource{}}
	for cluster := range addresses {
		attributes := agentAttributes(namespace, further)
		attributes["cluster"] = cluster
		configuration.Resources["flotilla_agent."+cluster] = providertest.Resource{Attributes: attributes}
	}
	return configuration
}

// expectRefusal plans and applies. Both must report all texts.
func expectRefusal(t *testing.T, w *providertest.Workspace, configuration providertest.Configuration, texts ...string) {
	t.Helper()
	_, diags := w.Plan(t.Context(), configuration)
	_, applyDiags := w.Apply(t.Context(), configuration)
	for _, text := range texts {
		if !strings.Contains(diags.String(), text) || !strings.Contains(applyDiags.String(), text) {
			t.Errorf("want %q; the plan says\n%s\nthe apply says\n%s", text, diags, applyDiags)
		}
	}
}

const otherAgent = "Cluster has the agent of another cluster"

// clusterLabel returns the cluster that the agent's objects belong to.
func clusterLabel(t *testing.T, server *kubetest.Server, namespace string) string {
	t.Helper()
	live := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster")
	if live == nil {
		return ""
	}
	return live.GetLabels()["flotilla.dev/cluster"]
}

// Two agents on one cluster would undo each other's changes.
func TestTwoNamesForOneClusterAreErrors(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "two-names"
	connection := connectionTo(server)
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	expectRefusal(
		t,
		other,
		agentsConfiguration(namespace, map[string]any{"north": connection, "south": connection}, nil),
		"Two names for one cluster",
		`reach cluster "north" and cluster "south" by the same address`,
		"Kustomization "+namespace+"/flotilla-cluster",
	)
	if clusterLabel(t, server, namespace) != "" {
		t.Error("something was applied")
	}
	if _, diags := w.Apply(t.Context(), agentsConfiguration(namespace, map[string]any{"north": connection}, nil)); diags.Err() != nil {
		t.Fatal(diags)
	}
	// In another state, or through another address, the label identifies the agent.
	south := agentsConfiguration(namespace, map[string]any{"south": connection}, nil)
	expectRefusal(t, other, south, otherAgent, `Kustomization `+namespace+`/flotilla-cluster`, `of the agent of cluster "north"`, "set force = true")
	if got := clusterLabel(t, server, namespace); got != "north" {
		t.Errorf("the objects belong to %q", got)
	}
	if _, diags := other.Apply(t.Context(), agentsConfiguration(namespace, map[string]any{"south": connection}, map[string]any{"force": true})); diags.Err() != nil {
		t.Fatal(diags)
	}
	if got := clusterLabel(t, server, namespace); got != "south" {
		t.Errorf("after force the objects belong to %q", got)
	}
	// The former name cannot take the objects back. Removing its agent leaves them.
	north := agentsConfiguration(namespace, map[string]any{"north": connection}, nil)
	expectRefusal(t, w, north, otherAgent, `of the agent of cluster "south"`)
	north.Resources = nil
	_, diags := w.Apply(t.Context(), north)
	if want := `Kustomization ` + namespace + `/flotilla-cluster stays: it is of cluster "south" now`; diags.Err() != nil ||
		!strings.Contains(diags.String(), want) {
		t.Errorf("the destroy says %s", diags)
	}
	if got := clusterLabel(t, server, namespace); got != "south" {
		t.Errorf("after the destroy the objects belong to %q", got)
	}
	if _, diags := other.Apply(t.Context(), south, providertest.Destroy()); diags.Err() != nil || len(diags) > 0 ||
		clusterLabel(t, server, namespace) != "" {
		t.Errorf("the destroy of the other agent says %s", diags)
	}
}

func TestARenamedClusterIsNotAnother(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "renamed"
	named := func(name string, names ...string) providertest.Configuration {
		clusters := map[string]any{name: connectionTo(server)}
		for _, other := range names {
			clusters[other] = connectionTo(server)
		}
		attributes := agentAttributes(namespace, nil)
		attributes["cluster"] = name
		configuration := onCluster(nil, attributes)
		configuration.Provider["clusters"] = clusters
		return configuration
	}
	w := providertest.New(startProvider)
	applyAgent(t, w, named("north"))
	// The destroy of the former name could not reach the cluster and would leave its objects.
	expectRefusal(t, w, named("south"), otherAgent, `of the agent of cluster "north"`)
	applyAgent(t, w, named("south", "north"))
	if got := clusterLabel(t, server, namespace); got != "south" {
		t.Errorf("the objects belong to %q", got)
	}
	if _, diags := w.Apply(t.Context(), named("south"), providertest.Destroy()); diags.Err() != nil || len(diags) > 0 {
		t.Errorf("the destroy says %s", diags)
	}
}

// Each cluster would follow the other's folders, with pruning on.
func TestExchangedAddressesAreErrors(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	one, another := kubetest.Start(t, kubetest.Options{Agents: true}), kubetest.StartAnother(t, kubetest.Options{Agents: true})
	const namespace = "exchanged"
	w := providertest.New(startProvider)
	right := agentsConfiguration(namespace, map[string]any{"north": connectionTo(one), "south": connectionTo(another)}, nil)
	if _, diags := w.Apply(t.Context(), right); diags.Err() != nil {
		t.Fatal(diags)
	}
	expectRefusal(t, w, agentsConfiguration(namespace, map[string]any{"north": connectionTo(another), "south": connectionTo(one)}, nil), otherAgent,
		`Cluster "north": `, `of the agent of cluster "south"`, `Cluster "south": `, `of the agent of cluster "north"`)
	if north, south := clusterLabel(t, one, namespace), clusterLabel(t, another, namespace); north != "north" || south != "south" {
		t.Errorf("the objects belong to %q and %q", north, south)
	}
	if plan := planAgent(t, w, right); !plan.Empty() {
		t.Error("with the right addresses, the plan is not empty")
	}
	if _, diags := w.Apply(t.Context(), right, providertest.Destroy()); diags.Err() != nil || len(diags) > 0 {
		t.Errorf("the destroy says %s", diags)
	}
}
