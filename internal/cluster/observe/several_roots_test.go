package observe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Anyone with the right to create objects on a cluster, or Applications on a hub, can create a second root of a folder. It cannot hide the
// status of the first root.
func TestTheWorstRootOfAFolderCounts(t *testing.T) {
	t.Parallel()
	const source = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: gitops, namespace: NAMESPACE, generation: 1}
spec: {url: "https://git.example.com/gitops", ref: {branch: dev}}
status:
  observedGeneration: 1
  artifact: {revision: "dev@sha1:COMMIT", lastUpdateTime: "2026-11-21T19:00:00Z"}
  conditions: [{type: Ready, status: "True", observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z"}]
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: gitops, namespace: NAMESPACE, generation: 1}
spec: {path: drone, wait: true, sourceRef: {kind: GitRepository, name: gitops}}
status:
  observedGeneration: 1
  lastAppliedRevision: "dev@sha1:COMMIT"
  lastAttemptedRevision: "dev@sha1:COMMIT"
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z"}]`
	flux := func(namespace, commit string) string {
		return strings.NewReplacer("NAMESPACE", namespace, "COMMIT", commit).Replace(source)
	}
	failing := func(namespace string) string { // at the tip, with a failed object of the folder
		return replaceOnce(t, flux(namespace, tip), `type: Ready, status: "True", reason: ReconciliationSucceeded`,
			`type: Ready, status: "False", reason: HealthCheckFailed, message: "failed: ConfigMap/web/settings"`)
	}
	argo := func(name, commit string) string {
		return hubApplication(
			name,
			"labels: {a: b}",
			"name: drone-1",
			`repoURL: "https://git.example.com/gitops", path: drone, targetRevision: dev`,
			commit,
		)
	}
	fleet := func(name, commit string) string {
		repo := strings.NewReplacer(
			"name: web,",
			"name: "+name+",",
			"name: web-web",
			"name: "+name,
			"repo-name: web",
			"repo-name: "+name,
			"bundle-name: web-web",
			"bundle-name: "+name,
			"effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b",
			`"`+commit+`"`,
			"git.example.com/web",
			"git.example.com/gitops",
			"branch: main, paths: [web]",
			"branch: dev, paths: [drone]",
		)
		return repo.Replace(readyRepo)
	}
	at := folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}
	cluster := func(listed reconciler.Answer) observe.ClusterReport {
		return observe.ReadCluster(at, "drone", "drone-1", listed)
	}
	hub := func(listed reconciler.Answer) observe.ClusterReport {
		return observe.ReadHub(at, map[string]string{"drone-1": "drone"}, listed)["drone-1"]
	}
	for name, test := range map[string]struct {
		read          func(reconciler.Answer) observe.ClusterReport
		first, second string
		want          verdict.Verdict
		message       string
		ofRoot        bool
	}{
		"both have the tip": {cluster, flux("a-team", tip), flux("flux-system", tip), verdict.Ready, "", true},
		"Flux, the second is behind": {cluster, flux("a-team", tip), flux("flux-system", older), verdict.Behind,
			"2 objects follow the folder; by Kustomization flux-system/gitops: has commit 2222222", true},
		"Flux, the first is behind": {cluster, flux("a-team", older), flux("flux-system", tip), verdict.Behind,
			"2 objects follow the folder; by Kustomization a-team/gitops: has commit 2222222", true},
		"Flux, the first fails": {cluster, failing("a-team"), flux("flux-system", tip), verdict.Failed,
			"2 objects follow the folder; by Kustomization a-team/gitops: Kustomization a-team/gitops is not ready: failed: ConfigMap/web/settings", true},
		"Argo CD": {cluster, argo("a", tip), argo("root", older), verdict.Behind,
			"2 objects follow the folder; by Application argocd/root: has commit 2222222", true},
		"Argo CD on a hub": {hub, argo("a", tip), argo("root", older), verdict.Behind,
			"2 objects follow the folder; by Application argocd/root: has commit 2222222", true},
		"Rancher Fleet": {cluster, fleet("a", tip), fleet("root", older), verdict.Behind,
			"2 objects follow the folder; by GitRepo fleet-local/root: has commit 2222222", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := test.read(reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(test.first)+"\n---"+test.second)})
			result := observe.Observe(observe.FleetReports{
				Time: time.Unix(2e9, 0), Tip: tip, Types: map[string]string{"drone-1": "drone"}, Reports: map[string]observe.ClusterReport{"drone-1": report},
				Commits: map[string]gitops.ReportedCommit{
					tip:   {ID: tip, Trees: map[string]map[string]string{"drone": {"web": treeA}}},
					older: {ID: older, Trees: map[string]map[string]string{"drone": {"web": treeB}}},
				},
				Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA, Namespace: "web"}},
			})
			if got := result.Clusters[0].Assignments[0]; got.Verdict != test.want || got.Message != test.message || got.OfRoot != test.ofRoot {
				t.Errorf("got %s, OfRoot %v: %s", got.Verdict, got.OfRoot, got.Message)
			}
		})
	}
}
