package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
)

// asUser is how a user with some rules is reached at the server. Rules replace those of the user before.
func asUser(t *testing.T, server *kubetest.Server, user, rules string) map[string]any {
	t.Helper()
	server.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: %[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, user, rules))
	certificate, key := server.ClientCertificate(t, user)
	return map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "client_certificate": certificate, "client_key": key}
}

const (
	everythingButDelete = `[{apiGroups: ["*"], resources: ["*"], verbs: [get, list, create, patch]}]`
	everythingButList   = `[{apiGroups: ["*"], resources: ["*"], verbs: [get, create, patch, delete]}]`
)

// A destroy without the rights for all of it changes nothing: else objects would stay without pruning, or half of them would.
func TestADestroyWithoutRightsChangesNothing(t *testing.T) {
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
			agent := anAgent(name, map[string]any{"on_destroy": test.onDestroy})
			if _, said := w.Apply(t.Context(), onCluster(theCluster(server), agent)); said.Err() != nil {
				t.Fatal(said)
			}
			narrow := onCluster(asUser(t, server, name, test.rules), nil)
			_, said := w.Apply(t.Context(), narrow)
			for _, text := range append(test.texts, "Credentials of the cluster lack permissions", "these credentials may not ",
				"nothing was changed there") {
				if !strings.Contains(said.String(), text) {
					t.Errorf("it does not say %q: %s", text, said)
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
			// With the rights, the destroy goes through.
			if _, said := w.Apply(t.Context(), onCluster(theCluster(server), nil)); said.Err() != nil {
				t.Error(said)
			}
			if server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, "flotilla-cluster") != nil {
				t.Error("the objects are still there")
			}
		})
	}
}

// What a destroy has changed before it failed, it says.
func TestADestroyThatFailsListsItsChanges(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "fails-halfway"
	w := providertest.New(startProvider)
	agent := anAgent(namespace, map[string]any{"timeouts": map[string]any{"delete": "8s"}})
	if _, said := w.Apply(t.Context(), onCluster(theCluster(server), agent)); said.Err() != nil {
		t.Fatal(said)
	}
	server.Apply(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flotilla-cluster, namespace: `+namespace+`, finalizers: [flotilla.dev/held]}`)
	_, said := w.Apply(t.Context(), onCluster(theCluster(server), nil))
	for _, text := range []string{
		"Kustomization fails-halfway/flotilla-cluster was deleted, and is still there", "Before that, these changes were made: ",
		"Kustomization fails-halfway/flotilla-cluster was set to leave what it has applied",
		"Kustomization fails-halfway/flotilla-cluster-type was deleted",
	} {
		if !strings.Contains(said.String(), text) {
			t.Errorf("it does not say %q: %s", text, said)
		}
	}
	server.Apply(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flotilla-cluster, namespace: `+namespace+`}`)
	if _, said := w.Apply(t.Context(), onCluster(theCluster(server), nil)); said.Err() != nil {
		t.Error(said)
	}
}

// An update that removes a former object, and may not, applies nothing.
func TestAnUpdateThatMayNotRemoveAppliesNothing(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace = "update-without-delete"
	w := providertest.New(startProvider)
	if _, said := w.Apply(t.Context(), onCluster(theCluster(server), anAgent(namespace, nil))); said.Err() != nil {
		t.Fatal(said)
	}
	narrow := asUser(t, server, namespace, everythingButDelete)
	_, said := w.Apply(t.Context(), onCluster(narrow, anAgent(namespace, map[string]any{"name": "other"})))
	if text := "delete GitRepository " + namespace + "/flotilla, Kustomization"; !strings.Contains(said.String(), text) {
		t.Errorf("it does not say %q: %s", text, said)
	}
	if server.Get(t, "source.toolkit.fluxcd.io/v1", "GitRepository", namespace, "other") != nil {
		t.Error("something was applied")
	}
}
