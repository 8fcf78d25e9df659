package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// rootCluster is a cluster with the objects that an assignment wrote for the type drone, all ready. repositoryURL has the form that the
// definitions of kinds accept. `make test` has a stand-in for its API server, `make acceptance` a real one.
type rootCluster struct {
	server                        *kubetest.Server // nil for a stand-in
	standIn                       *standInCluster
	namespace, tip, repositoryURL string
	readCompliance                func() map[string]any
	readVerdict                   func() string
}

const rootReadySince = "2026-11-21T19:00:00Z"

func rootCondition(status, reason, message string) []any {
	return []any{map[string]any{
		"type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": 1, "lastTransitionTime": rootReadySince,
	}}
}

// rootClusterLock runs the tests one after another: their objects have the same names on the one API server.
var rootClusterLock sync.Mutex

func startRootCluster(t *testing.T, reconciler, namespace string) rootCluster {
	t.Helper()
	fleet := fleetWithClusters(map[string]any{"cluster_types": []any{map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"},
		"reconciler": reconciler}},
		"clusters": []any{map[string]any{"name": "drone-1", "cluster_type": "drone"}}, "config_containers": []any{}})
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleet, nil))
	r := rootCluster{namespace: namespace, tip: git(t, url, "rev-parse", "dev"), repositoryURL: "http://" + url}
	cluster := r.startAPI(t)
	for path := range strings.FieldsSeq(git(t, url, "ls-tree", "-r", "--name-only", "dev", "clusters/all/drone/")) {
		if !strings.HasSuffix(path, "/reconciler.yaml") {
			continue
		}
		for document := range strings.SplitSeq(git(t, url, "show", "dev:"+path), "\n---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			spec, metadata := object["spec"].(map[string]any), object["metadata"].(map[string]any)
			r.putObject(t, object["kind"].(string), metadata["namespace"].(string), metadata["name"].(string), spec,
				rootCondition("True", "Succeeded", "applied"), "main")
		}
	}
	r.readCompliance = func() map[string]any {
		values, diags := readCompliance(t, url, map[string]any{"clusters": map[string]any{"drone-1": cluster}},
			map[string]any{"feedback": map[string]any{"clusters": true}, "fleet": fleet})
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		return values
	}
	r.readVerdict = func() string {
		drone := r.readCompliance()["clusters"].(map[string]any)["drone-1"].(map[string]any)
		return fmt.Sprintf("%v: %v", drone["verdict"], drone["message"])
	}
	return r
}

// startAPI starts the API server and returns the attributes of the cluster in the provider's `clusters`.
func (r *rootCluster) startAPI(t *testing.T) map[string]any {
	t.Helper()
	if !acceptancetest.All() {
		r.standIn = &standInCluster{}
		host, certificate := r.standIn.start(t)
		return map[string]any{"host": host + "/drone", "cluster_ca_certificate": certificate, "token": "t"}
	}
	rootClusterLock.Lock()
	t.Cleanup(rootClusterLock.Unlock)
	r.server = kubetest.Start(t, kubetest.Options{Agents: true})
	for _, name := range []string{r.namespace, "flux-system", "argocd"} {
		r.server.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`}}`)
	}
	return connectionTo(r.server)
}

// putObject replaces an object, with a status that refers to the tip of the branch.
func (r *rootCluster) putObject(t *testing.T, kind, namespace, name string, spec map[string]any, conditions any, branch string) {
	t.Helper()
	revision := branch + "@sha1:" + r.tip
	api, status := "", map[string]any{"observedGeneration": 1, "conditions": conditions}
	switch kind {
	case "GitRepository":
		api = "source.toolkit.fluxcd.io/v1"
		status["artifact"] = map[string]any{"revision": revision, "path": "a", "url": "http://a", "digest": "sha256:" + strings.Repeat("0",
			64), "lastUpdateTime": rootReadySince}
	case "Kustomization":
		api = "kustomize.toolkit.fluxcd.io/v1"
		status["lastAppliedRevision"], status["lastAttemptedRevision"] = revision, revision
	case "Application":
		api = "argoproj.io/v1alpha1"
		status = map[string]any{
			"health": map[string]any{"status": "Healthy", "lastTransitionTime": rootReadySince}, "reconciledAt": "2026-11-21T19:00:30Z",
			"sync": map[string]any{"status": "Synced", "revision": r.tip,
				"comparedTo": map[string]any{"destination": spec["destination"], "source": spec["source"]}},
			"history": []any{map[string]any{"id": 1, "revision": r.tip, "deployedAt": rootReadySince}},
			"operationState": map[string]any{"operation": map[string]any{}, "phase": "Succeeded", "message": "said", "startedAt": rootReadySince,
				"finishedAt": rootReadySince},
		}
		if change, is := conditions.(func(status map[string]any)); is {
			change(status)
		}
	}
	object := map[string]any{
		"apiVersion": api, "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace, "generation": 1}, "spec": spec,
		"status": status,
	}
	if r.standIn != nil {
		r.standIn.put("drone", object)
		return
	}
	r.server.Delete(t, api, kind, namespace, name)
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	r.server.Restore(t, string(text))
}

// Package observe tests the other reasons.
func TestComplianceShowsTheFailureOfARootObject(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	t.Run("flux", func(t *testing.T) {
		t.Parallel()
		const namespace = "root-fails"
		r := startRootCluster(t, "flux", namespace)
		ready := rootCondition("True", "Succeeded", "applied")
		source := func(conditions []any) {
			r.putObject(t, "GitRepository", namespace, "gitops", map[string]any{"url": r.repositoryURL, "interval": "1m",
				"ref": map[string]any{"branch": "dev"}}, conditions, "dev")
		}
		kustomization := func(name string, conditions []any) {
			r.putObject(t, "Kustomization", namespace, name, map[string]any{
				"path": "clusters/all/drone", "interval": "1m", "prune": true, "wait": true,
				"sourceRef": map[string]any{"kind": "GitRepository", "name": "gitops"}}, conditions, "dev")
		}
		for _, test := range []struct {
			change func()
			want   string
		}{
			{func() {}, "ready: 2 assignments are ready"},
			{func() { source(rootCondition("False", "GitOperationFailed", "authentication required")) },
				"failed: GitRepository " + namespace + "/gitops is not ready: authentication required"},
			{func() { kustomization("second", rootCondition("False", "BuildFailed", "kustomize build failed")) },
				"failed: 2 objects follow the folder; by Kustomization " + namespace + "/second: Kustomization " + namespace + "/second is not ready: kustomize build failed"},
		} {
			source(ready)
			kustomization("root", ready)
			test.change()
			if got := r.readVerdict(); got != test.want {
				t.Errorf("got verdict\n%s\nwant\n%s", got, test.want)
			}
		}
	})
	t.Run("argocd", func(t *testing.T) {
		t.Parallel()
		const namespace = "argo-root-fails"
		r := startRootCluster(t, "argocd", namespace)
		for phase, want := range map[string]string{
			"Succeeded": "ready: 2 assignments are ready",
			"Failed":    "failed: Application " + namespace + "/root cannot be synced: said",
		} {
			r.putObject(t, "Application", namespace, "root", map[string]any{
				"project": "default", "destination": map[string]any{"server": "https://kubernetes.default.svc"},
				"source": map[string]any{"repoURL": r.repositoryURL, "path": "clusters/all/drone", "targetRevision": "dev"},
			}, func(status map[string]any) { status["operationState"].(map[string]any)["phase"] = phase }, "dev")
			if got := r.readVerdict(); got != want {
				t.Errorf("got verdict\n%s\nwant\n%s", got, want)
			}
		}
	})
}
