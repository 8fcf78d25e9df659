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

var fluxRootSource = fluxSource(
	"gitops", "https://git.example.com/gitops", "{branch: dev}", "dev@sha1:"+tip, "2026-11-21T19:00:00Z",
) + `
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: gitops, namespace: flux-system, generation: 1}
spec: {path: drone, wait: true, sourceRef: {kind: GitRepository, name: gitops}}
status:
  observedGeneration: 1
  lastAppliedRevision: "dev@sha1:APPLIED"
  lastAttemptedRevision: "dev@sha1:1111111111111111111111111111111111111111"
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z", message: applied}]`

const rootReady = `type: Ready, status: "True", reason: ReconciliationSucceeded, observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z", message: applied`

// An assignment with ready objects is not ready while the root of its host's folder cannot apply the branch. Its message is the
// message of the root.
func TestNoAssignmentIsReadyWhileItsRootFails(t *testing.T) {
	t.Parallel()
	own := strings.NewReplacer("namespace: flux-system", "namespace: web").Replace(readyKustomization + "\n---" + readySource)
	flux := func(applied, old, by string) string {
		text := strings.ReplaceAll(fluxRootSource, "APPLIED", applied)
		if old != "" {
			text = replaceOnce(t, text, old, by)
		}
		return text
	}
	failing := func(reason, message string) string {
		return `type: Ready, status: "False", reason: ` + reason + `, observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z", message: "` + message + `"`
	}
	argo := func(pairs ...string) string {
		text := strings.NewReplacer("path: web", "path: drone", "targetRevision: v1", "targetRevision: dev", "name: web,", "name: root,",
			"effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b", `"`+tip+`"`).Replace(readyApplication)
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("%q is not in %s", pairs[i], text)
			}
			text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
		}
		return "\n" + strings.TrimSpace(text)
	}
	const root = "Kustomization flux-system/gitops "
	for name, test := range map[string]struct {
		root    string
		want    verdict.Verdict
		message string
		ofRoot  bool
	}{
		"everything is ready":                  {flux(tip, "", ""), verdict.Ready, "", false},
		"an older commit with the same folder": {flux(older, "", ""), verdict.Ready, "", false},
		"a failed dry run at the tip": {flux(older, rootReady, failing("ReconciliationFailed",
			"ConfigMap/other/x dry-run failed (Invalid)")), verdict.Failed, root + "is not ready: ConfigMap/other/x dry-run failed (Invalid)", true},
		"a failed dry run of an object of the assignment": {flux(older, rootReady, failing("ReconciliationFailed",
			"ConfigMap/web/x dry-run failed (Invalid)")), verdict.Failed, root + "is not ready: ConfigMap/web/x dry-run failed (Invalid)", false},
		"a failed build": {flux(older, rootReady, failing("BuildFailed", "kustomize build failed")), verdict.Failed,
			root + "is not ready: kustomize build failed", true},
		"a failed health check": {flux(tip, rootReady, failing("HealthCheckFailed",
			"health check failed: Kustomization/other/x")), verdict.Failed, root + "is not ready: health check failed: Kustomization/other/x", true},
		"a failed health check of an object of the assignment": {flux(tip, rootReady, failing("HealthCheckFailed",
			"health check failed: Kustomization/web/web")), verdict.Failed, root + "is not ready: health check failed: Kustomization/web/web", true},
		"its dependency is not ready": {flux(tip, rootReady, failing("DependencyNotReady",
			"dependency 'flux-system/infra' is not ready")), verdict.Progressing,
			root + "is not ready: dependency 'flux-system/infra' is not ready", true},
		"another commit is being applied": {flux(older, rootReady, strings.Replace(failing("Progressing", "Reconciliation in progress"),
			`"False"`, `"Unknown"`, 1)), verdict.Ready, "", false},
		"a dry run that failed a minute ago": {strings.ReplaceAll(flux(older, rootReady, failing("ReconciliationFailed",
			"ConfigMap/other/x dry-run failed (Invalid)")), "2026-11-21T19:00:00Z", "2026-11-21T20:59:00Z"),
			verdict.Progressing, root + "is not ready: ConfigMap/other/x dry-run failed (Invalid); it is tried again", true},
		"suspended": {flux(tip, "path: drone, ", "path: drone, suspend: true, "), verdict.Progressing, root + "is suspended", true},
		"being deleted": {flux(tip, "name: gitops, namespace: flux-system, generation: 1}\nspec: {path",
			"name: gitops, namespace: flux-system, generation: 1, deletionTimestamp: \"2026-11-21T19:00:00Z\"}\nspec: {path"),
			verdict.Progressing, root + "is being deleted", true},
		"with a kubeConfig": {flux(tip, "path: drone, ", "path: drone, kubeConfig: {secretRef: {name: other}}, "), verdict.Unknown,
			root + "has spec.kubeConfig: this cluster may have something else than the folder", true},
		"with patches": {flux(tip, "path: drone, ", "path: drone, patches: [{patch: x}], images: [{name: a}], "), verdict.Unknown,
			root + "has spec.images, spec.patches: this cluster may have something else than the folder", true},
		"with no patches": {flux(tip, "path: drone, ", "path: drone, patches: [], suspend: false, "), verdict.Ready, "", false},
		"a failed source": {flux(tip, `type: Ready, status: "True", reason: Succeeded`,
			`type: Ready, status: "False", reason: GitOperationFailed`), verdict.Failed,
			"GitRepository flux-system/gitops is not ready: stored", true},
		"a suspended source": {flux(tip, "ref: {branch: dev}}", "ref: {branch: dev}, suspend: true}"), verdict.Progressing,
			"GitRepository flux-system/gitops is suspended", true},
		"a failed second root": {flux(tip, "", "") + "\n---" + strings.ReplaceAll(flux(older, rootReady, failing("BuildFailed",
			"kustomize build failed")), "name: gitops,", "name: second,"),
			verdict.Failed, "2 objects follow the folder; by Kustomization flux-system/second: Kustomization flux-system/second is not ready: kustomize build failed", true},
		"Argo CD": {argo(), verdict.Ready, "", false},
		"Argo CD is out of sync": {argo("status: Synced", "status: OutOfSync"), verdict.Progressing,
			"Application argocd/root is out of sync", true},
		"Argo CD without a sync status": {argo("status: Synced", "status: Unknown"), verdict.Unknown,
			"Application argocd/root does not know whether it is in sync", true},
		"a failed sync": {argo("phase: Succeeded", "phase: Failed"), verdict.Failed,
			"Application argocd/root cannot be synced: successfully synced", true},
		"a repository that refuses Argo CD": {argo("reconciledAt:",
			"conditions: [{type: ComparisonError, message: authentication required}]\n  reconciledAt:"), verdict.Failed, "Application argocd/root authentication required", true},
		"a running sync":      {argo("phase: Succeeded", "phase: Running", "status: Synced", "status: OutOfSync"), verdict.Ready, "", false},
		"Argo CD is degraded": {argo("status: Healthy", "status: Degraded"), verdict.Failed, "Application argocd/root is degraded", true},
		"Argo CD with kustomize": {argo("path: drone", "path: drone, kustomize: {namePrefix: a-}"), verdict.Unknown,
			"Application argocd/root has spec.source.kustomize", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}
			report := observe.ReadCluster(at, "drone", "drone-1", reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(own)+"\n---"+test.root)})
			result := observe.Observe(observe.FleetReports{
				Time: time.Date(2026, 11, 21, 21, 0, 0, 0, time.UTC), Tip: tip, Types: map[string]string{"drone-1": "drone"},
				Reports: map[string]observe.ClusterReport{"drone-1": report},
				Commits: map[string]gitops.ReportedCommit{
					tip:   {ID: tip, Trees: map[string]map[string]string{"drone": {"web": treeA}}},
					older: {ID: older, Trees: map[string]map[string]string{"drone": {"web": treeA}}},
				},
				Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA, Namespace: "web",
					Objects: []reconciler.ObjectName{{Kind: "Kustomization", Namespace: "web", Name: "web"}}}},
			})
			got := result.Clusters[0].Assignments[0]
			if got.Verdict != test.want || !strings.HasPrefix(got.Message,
				test.message) || test.message == "" && got.Message != "" || got.OfRoot != test.ofRoot {
				t.Errorf("got %s, OfRoot %v: %s", got.Verdict, got.OfRoot, got.Message)
			}
			if cluster := result.Clusters[0]; cluster.Verdict != test.want {
				t.Errorf("the cluster is %s: %s", cluster.Verdict, cluster.Message)
			}
		})
	}
}

func TestRootsOfConfigSyncAndRancherFleetAreHindered(t *testing.T) {
	t.Parallel()
	sync := strings.NewReplacer("git.example.com/web", "git.example.com/gitops", "branch: main", "branch: dev", "dir: deploy",
		"dir: drone").Replace(readySync)
	repo := strings.NewReplacer("git.example.com/web", "git.example.com/gitops", "branch: main, paths: [web]",
		"branch: dev, paths: [drone]").Replace(readyRepo)
	for name, test := range map[string]struct{ text, want string }{
		"Config Sync": {sync, ""},
		"Config Sync cannot read its source": {
			replaceOnce(t, sync, "errorSummary: {}\n  rendering", "errors: [{code: \"2004\", errorMessage: authentication failed}]\n  rendering"),
			"failed: RootSync config-management-system/web cannot read its source: authentication failed",
		},
		"Rancher Fleet": {repo, ""},
		"Rancher Fleet is paused": {replaceOnce(t, repo, "branch: dev,", "branch: dev, paused: true,"),
			"progressing: GitRepo fleet-local/web is suspended"},
		"Rancher Fleet with a target namespace": {replaceOnce(t, repo, "branch: dev,", "branch: dev, targetNamespace: a,"),
			"unknown: GitRepo fleet-local/web has spec.targetNamespace: this cluster may have something else than the folder"},
	} {
		report := observe.ReadCluster(folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}, "drone", "drone-1",
			reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(test.text))})
		got := report.Applied["drone"].Hindered
		if text := strings.TrimPrefix(string(got.Verdict)+": "+got.Message, ": "); text != test.want {
			t.Errorf("%s: got %q, want %q", name, text, test.want)
		}
	}
}
