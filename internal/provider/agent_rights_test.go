package provider_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// connectAs connects as a user with rules, which replace the user's former rules.
func connectAs(t *testing.T, server *kubetest.Server, user, rules string) map[string]any {
	t.Helper()
	certificate, key := server.Permit(t, user, rules)
	return map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "client_certificate": certificate, "client_key": key}
}

const (
	everythingButDelete = `[{apiGroups: ["*"], resources: ["*"], verbs: [get, list, create, patch]}]`
	everythingButList   = `[{apiGroups: ["*"], resources: ["*"], verbs: [get, create, patch, delete]}]`
)

// A destroy that fails halfway would leave objects without pruning, or only half of them.
func TestADestroyWithoutRightsChangesNothing(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	for name, test := range map[string]struct {
		rules, onDestroy string
		texts            []string
	}{
		"keep-without-delete": {everythingButDelete, "keep", []string{
			"delete GitRepository keep-without-delete/flotilla, Kustomization keep-without-delete/flotilla-cluster, " +
				"Kustomization keep-without-delete/flotilla-cluster-type, Secret keep-without-delete/flotilla-repository"}},
		"delete-without-list": {everythingButList, "delete", []string{"list objects of every kind in Namespace delete-without-list"}},
		"keep-without-patch": {`[{apiGroups: ["*"], resources: ["*"], verbs: [get, list, delete]}]`, "keep", []string{
			"patch Kustomization keep-without-patch/flotilla-cluster, Kustomization keep-without-patch/flotilla-cluster-type"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := providertest.New(startProvider)
			agent := agentAttributes(name, map[string]any{"on_destroy": test.onDestroy})
			if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), agent)); diags.Err() != nil {
				t.Fatal(diags)
			}
			narrow := onCluster(connectAs(t, server, name, test.rules), nil)
			_, diags := w.Apply(t.Context(), narrow)
			for _, text := range append(test.texts, "Credentials of the cluster lack permissions", "these credentials may not ",
				"nothing was changed there") {
				if !strings.Contains(diags.String(), text) {
					t.Errorf("got no %q: %s", text, diags)
				}
			}
			for _, suffix := range []string{"cluster", "cluster-type"} {
				live := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, "flotilla-"+suffix)
				if live == nil {
					t.Fatalf("%s was removed", suffix)
				}
				if prunes, _, _ := unstructured.NestedBool(live.Object, "spec", "prune"); !prunes {
					t.Errorf("%s does not prune any more", suffix)
				}
			}
			if server.Get(t, "v1", "Secret", name, "flotilla-repository") == nil {
				t.Error("the Secret was removed")
			}
			if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), nil)); diags.Err() != nil {
				t.Error(diags)
			}
			if server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, "flotilla-cluster") != nil {
				t.Error("the objects still exist")
			}
		})
	}
}

func TestADestroyThatFailsListsItsChanges(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "fails-halfway"
	w := providertest.New(startProvider)
	agent := agentAttributes(namespace, map[string]any{"timeouts": map[string]any{"delete": "8s"}})
	if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), agent)); diags.Err() != nil {
		t.Fatal(diags)
	}
	server.Apply(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flotilla-cluster, namespace: `+namespace+`, finalizers: [flotilla.dev/held]}`)
	_, diags := w.Apply(t.Context(), onCluster(connectionTo(server), nil))
	for _, text := range []string{
		"Kustomization fails-halfway/flotilla-cluster was deleted, and is still there", "Before that, these changes were made: ",
		"Kustomization fails-halfway/flotilla-cluster was set to leave what it has applied",
		"Kustomization fails-halfway/flotilla-cluster-type was deleted",
	} {
		if !strings.Contains(diags.String(), text) {
			t.Errorf("got no %q: %s", text, diags)
		}
	}
	server.Apply(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flotilla-cluster, namespace: `+namespace+`}`)
	if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), nil)); diags.Err() != nil {
		t.Error(diags)
	}
}

func TestAnUpdateWithoutDeleteRightsAppliesNothing(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "update-without-delete"
	w := providertest.New(startProvider)
	if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), agentAttributes(namespace, nil))); diags.Err() != nil {
		t.Fatal(diags)
	}
	narrow := connectAs(t, server, namespace, everythingButDelete)
	_, diags := w.Apply(t.Context(), onCluster(narrow, agentAttributes(namespace, map[string]any{"name": "other"})))
	if text := "delete GitRepository " + namespace + "/flotilla, Kustomization"; !strings.Contains(diags.String(), text) {
		t.Errorf("got no %q: %s", text, diags)
	}
	if server.Get(t, "source.toolkit.fluxcd.io/v1", "GitRepository", namespace, "other") != nil {
		t.Error("something was applied")
	}
}

// Compliance names the kind that the agent follows, not the kind of the last refusal.
func TestComplianceWithoutRightsNamesTheMissingRight(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	clusters := map[string]any{"drone-1": connectAs(t, server, "compliance-nothing", "[]")}
	values, diags := readCompliance(t, url, map[string]any{"clusters": clusters}, map[string]any{"feedback": map[string]any{"clusters": true}})
	drone := values["clusters"].(map[string]any)["drone-1"].(map[string]any)
	if text := fmt.Sprint(drone["message"]); diags.Err() != nil || drone["verdict"] != "unknown" || !strings.Contains(text,
		"list kustomizations.kustomize.toolkit.fluxcd.io") {
		t.Errorf("the message is %s; diagnostics: %s", text, diags)
	}
}

// TestFieldsThatDivertAnAgentAreDrift adds fields that redirect an agent's reads, or make it ignore changes.
func TestFieldsThatDivertAnAgentAreDrift(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for reconciler, test := range map[string]struct{ kind, name, spec, field string }{
		"flux": {"source.toolkit.fluxcd.io/v1 GitRepository", "flotilla", `{"proxySecretRef":{"name":"other"}}`, "spec.proxySecretRef"},
		"argocd": {"argoproj.io/v1alpha1 Application", "flotilla-cluster-type",
			`{"ignoreDifferences":[{"kind":"Deployment","group":"apps","jsonPointers":["/spec"]}]}`, "spec.ignoreDifferences"},
	} {
		t.Run(reconciler, func(t *testing.T) {
			t.Parallel()
			namespace := "diverted-" + reconciler
			w := providertest.New(startProvider)
			configuration := onCluster(connectionTo(server), agentAttributes(namespace, map[string]any{"reconciler": reconciler}))
			if _, diags := w.Apply(t.Context(), configuration); diags.Err() != nil {
				t.Fatal(diags)
			}
			version, kind, _ := strings.Cut(test.kind, " ")
			var resource schema.GroupVersionResource
			resource.Group, resource.Version, _ = strings.Cut(version, "/")
			resource.Resource = map[string]string{"GitRepository": "gitrepositories", "Application": "applications"}[kind]
			patch := []byte(`{"spec":` + test.spec + `}`)
			_, err := server.Client().Resource(resource).Namespace(namespace).Patch(t.Context(), test.name, types.MergePatchType, patch,
				metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := kind + " " + namespace + "/" + test.name + ": " + test.field + " changed"
			if got := strings.Join(agentLines(planAgent(t, w, configuration)), "\n"); !strings.HasPrefix(got, want) {
				t.Errorf("the plan has %q, want %q", got, want)
			}
			applyAgent(t, w, configuration)
		})
	}
}
