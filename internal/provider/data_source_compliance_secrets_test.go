package provider_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The Secret must exist and have the version of the reference.
func TestAnAssignmentIsReadyWithTheSecretsOfItsReferences(t *testing.T) {
	t.Parallel()
	url := bare(t)
	fleet := func(version string) providertest.Call {
		return fleetWithClusters(map[string]any{
			"cluster_types": []any{map[string]any{
				"name": "drone", "labels": map[string]any{"edge": "true"}, "secret_service": "external-secrets", "secret_stores": map[string]any{"vault": map[string]any{}},
			}},
			"clusters": []any{map[string]any{"name": "drone-1", "cluster_type": "drone"}},
			"config_containers": []any{map[string]any{"name": "all", "secrets": map[string]any{
				"PASSWORD": map[string]any{"store": "vault", "key": "prod/db", "version": version},
			}}},
		})
	}
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleet("1"), nil))
	condition := func(status, reason, message string) map[string]any {
		return map[string]any{
			"type":               "Ready",
			"status":             status,
			"reason":             reason,
			"message":            message,
			"lastTransitionTime": "2026-11-21T19:00:00Z",
		}
	}
	synced := func(version string) map[string]any {
		return map[string]any{
			"conditions": []any{
				condition("True", "SecretSynced", "secret synced"),
			}, "refreshTime": "2026-11-21T19:00:00Z", "syncedResourceVersion": version,
		}
	}
	const object = "ExternalSecret dev-drone-app-edge/platform-secrets "
	for _, test := range []struct {
		name        string
		generation  int
		status      map[string]any
		missingList string // absent from the API
		want        string
	}{
		{"a new reference", 1, nil, "", "progressing: " + object + "has no status yet"},
		{"a synced Secret", 1, synced("1-6fa8"), "", "ready: "},
		{"a Secret of the former version", 2, synced("1-6fa8"), "", "progressing: " + object + "was changed after its Secret was written"},
		{
			"a missing key of the store", 2, map[string]any{"conditions": []any{condition("False", "SecretSyncedError", "could not get secret data from provider")}, "syncedResourceVersion": "1-6fa8"}, "",
			"progressing: " + object + "is not ready: could not get secret data from provider; it is tried again",
		},
		{"no operator", 1, nil, "externalsecrets", "unknown: " + object + "cannot be read: the cluster has no externalsecrets.external-secrets.io"},
	} {
		lists := readyLists(t, url, "clusters/all/drone")
		for path, items := range lists {
			for _, one := range items {
				one := one.(map[string]any)
				if metadata := one["metadata"].(map[string]any); one["kind"] == "ExternalSecret" && metadata["namespace"] == "dev-drone-app-edge" {
					metadata["generation"], one["status"] = test.generation, test.status
				}
			}
			if test.missingList != "" && strings.HasSuffix(path, "/"+test.missingList) {
				delete(lists, path)
			}
		}
		values, diags := readCompliance(t, url,
			map[string]any{"clusters": map[string]any{"drone-1": map[string]any{"host": serveLists(t, lists)}}},
			map[string]any{"fleet": fleet("1"), "feedback": map[string]any{"clusters": true}})
		if diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		got := "ready: "
		if edge, notReady := values["assignments"].(map[string]any)["drone/app-edge"].(map[string]any); notReady {
			got = fmt.Sprintf("%s: %s", edge["verdict"], edge["message"])
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// readyLists returns the lists of a cluster that has applied a folder of branch dev. All objects are ready.
func readyLists(t *testing.T, url, folder string) map[string][]any {
	t.Helper()
	tip := git(t, url, "rev-parse", "dev")
	ready := []any{
		map[string]any{
			"type":               "Ready",
			"status":             "True",
			"reason":             "ReconciliationSucceeded",
			"observedGeneration": 1,
			"lastTransitionTime": "2026-11-21T19:00:00Z",
		},
	}
	kinds := map[string]string{
		"GitRepository":  "/apis/source.toolkit.fluxcd.io/v1/gitrepositories",
		"Kustomization":  "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations",
		"ExternalSecret": "/apis/external-secrets.io/v1/externalsecrets",
	}
	lists := map[string][]any{}
	add := func(object map[string]any, revision string) {
		kind := object["kind"].(string)
		if kinds[kind] == "" {
			return
		}
		object["metadata"].(map[string]any)["generation"] = 1
		status := map[string]any{"conditions": ready}
		switch kind {
		case "ExternalSecret":
			status["syncedResourceVersion"] = "1-6fa8"
		case "Kustomization":
			maps.Copy(status, map[string]any{"observedGeneration": 1, "lastAppliedRevision": revision, "lastAttemptedRevision": revision})
		default:
			maps.Copy(status, map[string]any{"observedGeneration": 1, "artifact": map[string]any{"revision": revision}})
		}
		object["status"] = status
		lists[kinds[kind]] = append(lists[kinds[kind]], object)
	}
	root := map[string]any{"name": "gitops", "namespace": "flux-system"}
	add(map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": maps.Clone(root), "spec": map[string]any{"url": url, "ref": map[string]any{"branch": "dev"}},
	}, "dev@sha1:"+tip)
	add(map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": maps.Clone(root),
		"spec": map[string]any{"path": folder, "wait": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "gitops"}},
	}, "dev@sha1:"+tip)
	for path := range strings.FieldsSeq(git(t, url, "ls-tree", "-r", "--name-only", "dev", folder+"/")) {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(git(t, url, "show", "dev:"+path), "---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			if object != nil {
				add(object, "main@sha1:"+strings.Repeat("a", 40))
			}
		}
	}
	return lists
}
