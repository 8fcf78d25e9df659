package observe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func parseObjects(t testing.TB, documents string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(documents, "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		objects = append(objects, object)
	}
	return objects
}

const (
	readyKustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system, generation: 2}
spec: {path: ./web, wait: true, sourceRef: {kind: GitRepository, name: web}}
status:
  observedGeneration: 2
  lastAppliedRevision: v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, message: Applied revision, observedGeneration: 2, lastTransitionTime: "2026-11-21T20:00:00Z"}]`
	readySource = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: web, namespace: flux-system, generation: 1}
spec: {url: "https://git.example.com/web", ref: {tag: v1}}
status:
  observedGeneration: 1
  artifact: {revision: v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b, lastUpdateTime: "2026-11-21T19:00:00Z"}
  conditions: [{type: Ready, status: "True", reason: Succeeded, message: stored, observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z"}]`
	readyRelease = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system, generation: 1}
spec: {chart: {spec: {chart: web, version: 1.2.3, sourceRef: {kind: HelmRepository, name: web}}}}
status:
  observedGeneration: 1
  helmChart: flux-system/flux-system-web
  lastAttemptedRevision: 1.2.3
  history: [{chartVersion: 1.2.3, lastDeployed: "2026-11-21T21:00:00Z"}]
  conditions: [{type: Ready, status: "True", reason: UpgradeSucceeded, message: upgraded, observedGeneration: 1, lastTransitionTime: "2026-11-21T20:00:00Z"}]`
	readyChart = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: flux-system-web, namespace: flux-system, generation: 1}
spec: {chart: web, version: 1.2.3, sourceRef: {kind: HelmRepository, name: web}}
status:
  observedGeneration: 1
  observedChartName: web
  observedSourceArtifactRevision: sha256:aaaa
  artifact: {revision: 1.2.3, lastUpdateTime: "2026-11-21T19:00:00Z"}
  conditions: [{type: Ready, status: "True", reason: ChartPullSucceeded, message: pulled, observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z"}]`
	readyCharts = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: web, namespace: flux-system, generation: 1}
spec: {url: "https://charts.example.com"}
status:
  observedGeneration: 1
  artifact: {revision: "sha256:aaaa", lastUpdateTime: "2026-11-21T19:00:00Z"}
  conditions: [{type: Ready, status: "True", reason: Succeeded, message: stored, observedGeneration: 1, lastTransitionTime: "2026-11-21T19:00:00Z"}]`
	ociCharts = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: web, namespace: flux-system, generation: 1}
spec: {type: oci, url: "oci://charts.example.com"}`
	readyHelmOp = `
apiVersion: fleet.cattle.io/v1alpha1
kind: HelmOp
metadata: {name: web, namespace: fleet-local, generation: 1}
spec: {helm: {chart: web, repo: "https://charts.example.com", values: {a: 1}, version: 1.2.3}}
status:
  version: 1.2.3
  conditions: [{type: Ready, status: "True", lastUpdateTime: "2026-11-21T20:00:00Z"}, {type: Accepted, status: "True"}]
---
apiVersion: fleet.cattle.io/v1alpha1
kind: Bundle
metadata: {name: web, namespace: fleet-local, generation: 3, labels: {fleet.cattle.io/fleet-helm-name: web}}
spec: {helm: {chart: web, repo: "https://charts.example.com", values: {a: 1}, version: 1.2.3}}
status:
  observedGeneration: 3
  summary: {ready: 1, desiredReady: 1}
  conditions: [{type: Ready, status: "True", lastUpdateTime: "2026-11-21T20:00:00Z"}]`
	readyApplication = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, generation: 25}
spec:
  destination: {server: "https://kubernetes.default.svc", namespace: web}
  source: {repoURL: "https://git.example.com/web", path: web, targetRevision: v1}
status:
  health: {status: Healthy, lastTransitionTime: "2026-11-21T20:00:00Z"}
  reconciledAt: "2026-11-21T20:30:00Z"
  operationState: {phase: Succeeded, startedAt: "2026-11-21T20:00:00Z", finishedAt: "2026-11-21T20:10:00Z", message: successfully synced}
  history: [{revision: effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b, deployedAt: "2026-11-21T20:10:00Z"}]
  sync:
    status: Synced
    revision: effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b
    comparedTo:
      destination: {server: "https://kubernetes.default.svc", namespace: web}
      source: {repoURL: "https://git.example.com/web", path: web, targetRevision: v1, directory: {jsonnet: {}}}`
	readyRepo = `
apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: web, namespace: fleet-local, generation: 1}
spec: {repo: "https://git.example.com/web", branch: main, paths: [web]}
status:
  observedGeneration: 1
  commit: effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b
  summary: {ready: 1, desiredReady: 1}
  conditions: [{type: Ready, status: "True", lastUpdateTime: "2026-11-21T20:00:00Z"}, {type: Accepted, status: "True"}]
---
apiVersion: fleet.cattle.io/v1alpha1
kind: Bundle
metadata:
  name: web-web
  namespace: fleet-local
  generation: 3
  labels: {fleet.cattle.io/repo-name: web, fleet.cattle.io/commit: effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b}
spec: {}
status:
  observedGeneration: 3
  summary: {ready: 1, desiredReady: 1}
  conditions: [{type: Ready, status: "True", lastUpdateTime: "2026-11-21T20:00:00Z"}]
---
apiVersion: fleet.cattle.io/v1alpha1
kind: BundleDeployment
metadata: {name: web-web, namespace: cluster-fleet-local-local, generation: 4, labels: {fleet.cattle.io/bundle-name: web-web, fleet.cattle.io/bundle-namespace: fleet-local}}
spec: {deploymentID: s-1:o-1}
status:
  appliedDeploymentID: s-1:o-1
  ready: true
  nonModified: true
  conditions: [{type: Ready, status: "True", lastUpdateTime: "2026-11-21T20:00:00Z"}, {type: Deployed, status: "True"}]`
)

// judge returns the verdict of one assignment on a cluster that has applied its folder. The first document reconciles the assignment.
// Sources missing from documents are added and ready.
func judge(t *testing.T, documents string) observe.AssignmentResult {
	t.Helper()
	for kind, ready := range map[string]string{"GitRepository": readySource, "HelmChart": readyChart, "HelmRepository": readyCharts} {
		if !strings.Contains(documents, "kind: "+kind+"\n") {
			documents += "\n---" + ready
		}
	}
	return judgeListed(t, reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(documents))})
}

// judgeListed returns the verdict of one assignment by the listed objects. It adds the root of the folder.
func judgeListed(t *testing.T, listed reconciler.Answer) observe.AssignmentResult {
	t.Helper()
	return observe.Observe(judgeInput(t, listed)).Clusters[0].Assignments[0]
}

func judgeInput(t *testing.T, listed reconciler.Answer) observe.FleetReports {
	t.Helper()
	const root = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: root, namespace: flux-system, generation: 1}
spec: {path: ./drone, sourceRef: {kind: GitRepository, name: root}}
status:
  observedGeneration: 1
  lastAppliedRevision: dev@sha1:` + tip + `
  lastAttemptedRevision: dev@sha1:` + tip + `
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, observedGeneration: 1, lastTransitionTime: "2026-11-21T18:00:00Z"}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: root, namespace: flux-system, generation: 1}
spec: {url: "https://git.example.com/gitops.git", ref: {branch: dev}}
---
`
	first := listed.Objects[0]
	listed.Objects = append(parseObjects(t, strings.TrimSuffix(strings.TrimPrefix(root, "\n"), "\n---\n")), listed.Objects...)
	at := folder.Location{URL: "git@git.example.com:gitops", Branch: "dev"}
	return observe.FleetReports{
		Time: listed.Objects[0].GetCreationTimestamp().Time, Tip: tip, Types: map[string]string{"drone-1": "drone"},
		Reports: map[string]observe.ClusterReport{"drone-1": observe.ReadCluster(at, "drone", "drone-1", listed)},
		Commits: map[string]gitops.ReportedCommit{tip: {ID: tip, Trees: map[string]map[string]string{"drone": {"web": treeA}}}},
		Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA,
			Objects: []reconciler.ObjectName{{Kind: first.GetKind(), Namespace: first.GetNamespace(), Name: "web"}}}},
	}
}

func TestVerdictsOfReconcilerObjects(t *testing.T) {
	t.Parallel()
	argo := func(old, by string) string { return replaceOnce(t, readyApplication, old, by) }
	flux := func(old, by string) string { return replaceOnce(t, readyKustomization, old, by) }
	source := func(old, by string) string {
		return readyKustomization + "\n---" + replaceOnce(t, readySource, old, by)
	}
	helm := func(old, by string) string { return replaceOnce(t, readyRelease, old, by) }
	fleet := func(old, by string) string { return replaceOnce(t, readyRepo, old, by) }
	const (
		applied       = `status: "True", reason: ReconciliationSucceeded, message: Applied revision`
		dryRun        = `status: "False", reason: ReconciliationFailed, message: "ConfigMap/web/a dry-run failed: no such field"`
		running       = `status: Unknown, reason: Progressing, message: Reconciliation in progress`
		upgraded      = `status: "True", reason: UpgradeSucceeded, message: upgraded`
		upgradeFailed = `status: "False", reason: UpgradeFailed, message: timed out`
	)
	retrying := func(message string) string {
		return `}, {type: Reconciling, status: "True", reason: ProgressingWithRetry, message: "` + message + `"`
	}
	for name, test := range map[string]struct {
		documents string
		want      expectation
	}{
		"a ready Kustomization": {readyKustomization, expectation{verdict.Ready, ""}},
		"a ready source":        {source("stored", "stored"), expectation{verdict.Ready, ""}},
		"a ready HelmRelease":   {readyRelease, expectation{verdict.Ready, ""}},
		"a ready Application":   {readyApplication, expectation{verdict.Ready, ""}},
		"a ready GitRepo":       {readyRepo, expectation{verdict.Ready, ""}},

		"a stale observedGeneration":                        {flux("generation: 2}", "generation: 3}"), expectation{verdict.Progressing, "was changed after its status was written"}},
		"a condition of an older generation":                {flux("observedGeneration: 2, last", "observedGeneration: 1, last"), expectation{verdict.Progressing, "was changed"}},
		"a status of an older generation":                   {flux("  observedGeneration: 2\n", "  observedGeneration: 1\n"), expectation{verdict.Progressing, "observed generation is 1"}},
		"an invalid generation":                             {flux("  observedGeneration: 2\n", "  observedGeneration: x\n"), expectation{verdict.Unknown, "has conditions that cannot be read"}},
		"no status at all":                                  {flux(`type: Ready`, `type: Other`), expectation{verdict.Progressing, "has no status yet"}},
		"invalid conditions":                                {flux(`conditions: [{type: Ready`, `conditions: [1, {type: 5`), expectation{verdict.Progressing, "has no status yet"}},
		"suspended":                                         {flux("wait: true", "wait: true, suspend: true"), expectation{verdict.Progressing, "is suspended"}},
		"stalled":                                           {flux(`conditions: [`, `conditions: [{type: Stalled, status: "True", message: no such field, observedGeneration: 2}, `), expectation{verdict.Failed, "has stalled: no such field"}},
		"being deleted":                                     {flux("namespace: flux-system,", `namespace: flux-system, deletionTimestamp: "2026-11-21T20:00:00Z",`), expectation{verdict.Progressing, "is being deleted"}},
		"no health checks":                                  {flux("wait: true, ", ""), expectation{verdict.Unknown, "neither `wait` nor health checks"}},
		"health checks of its own":                          {flux("wait: true", "healthChecks: [{kind: Deployment, name: web}]"), expectation{verdict.Ready, ""}},
		"its health checks have failed":                     {flux(`status: "True", reason: ReconciliationSucceeded, message: Applied revision`, `status: "False", reason: HealthCheckFailed, message: "Deployment web: no space"`), expectation{verdict.Failed, "is not ready: Deployment web: no space"}},
		"the first dry run failed":                          {withAttempts(flux(applied, dryRun), 1, "ReconciliationFailed"), expectation{verdict.Progressing, "could not be applied, and is tried again: ConfigMap/web/a dry-run failed"}},
		"the second dry run failed, too":                    {withAttempts(flux(applied, dryRun), 2, "ReconciliationFailed"), expectation{verdict.Failed, "is not ready: ConfigMap/web/a dry-run failed"}},
		"the third attempt runs":                            {withAttempts(flux(applied, running), 2, "ReconciliationFailed"), expectation{verdict.Failed, "has failed 2 times, and is tried again: Reconciliation in progress"}},
		"the second attempt runs":                           {withAttempts(flux(applied, running), 1, "ReconciliationFailed"), expectation{verdict.Progressing, "Reconciliation in progress"}},
		"a changed spec after two attempts":                 {withAttempts(strings.Replace(flux(applied, running), "generation: 2}", "generation: 3}", 1), 2, "ReconciliationFailed"), expectation{verdict.Progressing, "was changed"}},
		"a health check failed, and runs again":             {withAttempts(flux(applied, running), 1, "HealthCheckFailed"), expectation{verdict.Failed, "has failed 1 time, and is tried again"}},
		"a newer revision is being tried":                   {strings.Replace(withAttempts(flux(applied, running), 2, "ReconciliationFailed"), "lastAttemptedRevision: v1", "lastAttemptedRevision: v2", 1), expectation{verdict.Progressing, "Reconciliation in progress"}},
		"its source is not fetched yet":                     {flux(`status: "True", reason: ReconciliationSucceeded, message: Applied revision`, `status: "False", reason: ArtifactFailed, message: "Source artifact not found, retrying in 2s"`), expectation{verdict.Progressing, "Source artifact not found"}},
		"its source does not have its path":                 {flux(`status: "True", reason: ReconciliationSucceeded, message: Applied revision`, `status: "False", reason: ArtifactFailed, message: "kustomization path not found"`), expectation{verdict.Failed, "kustomization path not found"}},
		"its source has a newer revision":                   {source("v1@sha1:effd5e", "v1@sha1:000000"), expectation{verdict.Progressing, "and its source has v1@sha1:000000"}},
		"its source was changed":                            {source("namespace: flux-system, generation: 1", "namespace: flux-system, generation: 2"), expectation{verdict.Progressing, "GitRepository flux-system/web was changed"}},
		"its source has no such tag":                        {failSource(source(`ref: {tag: v1}`, `ref: {tag: v2}`), "v2 not found"), expectation{verdict.Failed, "GitRepository flux-system/web is not ready: v2 not found"}},
		"its source cannot be reached for a while":          {failSource(source(`stored`, `stored`), "timeout"), expectation{verdict.Ready, ""}},
		"a chart's version in place of a commit":            {helm("web, version", "web, version"), expectation{verdict.Ready, ""}},
		"a HelmRelease of an older image":                   {imageRelease(t, "1.2.4@sha256:bbbb"), expectation{verdict.Progressing, "has 1.2.3+aaaa, and its source has 1.2.4@sha256:bbbb"}},
		"a HelmRelease of the present image":                {imageRelease(t, "1.2.3@sha256:aaaa"), expectation{verdict.Ready, ""}},
		"a HelmRelease of an older chart":                   {readyRelease + "\n---" + strings.ReplaceAll(readyChart, "1.2.3", "1.2.4"), expectation{verdict.Progressing, "has 1.2.3, and its source has 1.2.4"}},
		"an index that cannot be read for a while":          {readyRelease + "\n---" + failSource(readyCharts, "timeout"), expectation{verdict.Ready, ""}},
		"the newest chart, without an index":                {readyRelease + "\n---" + replaceOnce(t, readyChart, "version: 1.2.3", `version: "*"`) + "\n---" + failSource(readyCharts, "timeout"), expectation{verdict.Failed, "HelmRepository flux-system/web is not ready: timeout"}},
		"charts in a registry have no index":                {readyRelease + "\n---" + replaceOnce(t, readyChart, "version: 1.2.3", `version: "*"`) + "\n---" + ociCharts, expectation{verdict.Ready, ""}},
		"sources that include each other":                   {source("ref: {tag: v1}", "ref: {tag: v1}, include: [{repository: {name: web}}]") + "\n  includedArtifacts: [{revision: v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b}]", expectation{verdict.Unknown, "too many objects"}},
		"a HelmRelease that does not wait":                  {helm("spec: {chart: {spec", "spec: {upgrade: {disableWait: true}, chart: {spec"), expectation{verdict.Unknown, "it has `disableWait`"}},
		"a HelmRelease that failed":                         {helm(`status: "True", reason: UpgradeSucceeded, message: upgraded`, `status: "False", reason: UpgradeFailed, message: timed out`), expectation{verdict.Failed, "timed out"}},
		"a HelmRelease that is tried again":                 {helm(upgraded, upgradeFailed+retrying("Helm upgrade failed: no space")), expectation{verdict.Progressing, "could not be installed, and is tried again: timed out"}},
		"a HelmRelease whose retries are used up":           {helm(upgraded, upgradeFailed+`}, {type: Stalled, status: "True", message: "Failed to upgrade after 2 attempt(s)"`), expectation{verdict.Failed, "has stalled: Failed to upgrade after 2 attempt(s): timed out"}},
		"a HelmRelease that is retried for ever":            {helm(upgraded, upgradeFailed+retrying("retrying after 5m0s")) + "\n  upgradeFailures: 2", expectation{verdict.Failed, "timed out"}},
		"a HelmRelease at the first of its endless retries": {helm(upgraded, upgradeFailed+retrying("retrying after 5m0s")) + "\n  upgradeFailures: 1", expectation{verdict.Progressing, "is tried again"}},
		"a HelmRelease whose chart is not fetched yet":      {helm(`status: "True", reason: UpgradeSucceeded, message: upgraded`, `status: "False", reason: ArtifactFailed, message: "HelmChart 'web' is not ready"`), expectation{verdict.Progressing, "is not ready"}},
		"a health older than the last sync":                 {argo(`reconciledAt: "2026-11-21T20:30:00Z"`, `reconciledAt: "2026-11-21T20:05:00Z"`), expectation{verdict.Progressing, "was synced at 2026-11-21T20:10:00Z, and its health was determined before that"}},
		"an Application that was changed":                   {argo(`targetRevision: v1}`, `targetRevision: v2}`), expectation{verdict.Progressing, "was changed after its status was written"}},
		"a sync that succeeded, out of sync":                {argo("status: Synced", "status: OutOfSync"), expectation{verdict.Progressing, "is out of sync"}},
		"an unknown sync status":                            {argo("status: Synced", "status: Unknown"), expectation{verdict.Unknown, "does not know whether it is in sync"}},
		"a sync that runs":                                  {argo("phase: Succeeded", "phase: Running"), expectation{verdict.Progressing, "is being synced"}},
		"a sync about to run":                               {argo("spec:\n", "operation: {sync: {}}\nspec:\n"), expectation{verdict.Progressing, "is about to be synced"}},
		"a sync that failed":                                {argo("phase: Succeeded, startedAt: \"2026-11-21T20:00:00Z\", finishedAt: \"2026-11-21T20:10:00Z\", message: successfully synced", "phase: Failed, message: no such kind"), expectation{verdict.Failed, "cannot be synced: no such kind"}},
		"a sync that is tried again":                        {argo("phase: Succeeded", "phase: Running, retryCount: 2"), expectation{verdict.Progressing, "could not be synced, and is tried again (attempt 3): successfully synced"}},
		"a sync that is tried a few times":                  {argo("phase: Succeeded", "phase: Running, retryCount: 1, operation: {retry: {limit: 5}}"), expectation{verdict.Progressing, "is tried again (attempt 2 of 6)"}},
		"a sync that is tried for ever":                     {argo("phase: Succeeded", "phase: Running, retryCount: 2, operation: {retry: {limit: -1}}"), expectation{verdict.Failed, "cannot be synced"}},
		"a sync whose retries are used up":                  {argo("phase: Succeeded", "phase: Failed, retryCount: 5"), expectation{verdict.Failed, "cannot be synced"}},
		"an Application that is not healthy":                {argo("status: Healthy,", "status: Degraded, message: no space,"), expectation{verdict.Failed, "is degraded: no space"}},
		"an autoscaler that scales":                         {argo("status: Healthy", "status: Progressing") + resourceStatus("HorizontalPodAutoscaler", "Progressing", "scaling"), expectation{verdict.Progressing, "is progressing: HorizontalPodAutoscaler web/web (scaling)"}},
		"a Deployment that is paused":                       {argo("status: Healthy", "status: Suspended") + resourceStatus("Deployment", "Suspended", ""), expectation{verdict.Progressing, "is suspended: Deployment web/web"}},
		"objects that are missing":                          {argo("status: Healthy", "status: Missing"), expectation{verdict.Progressing, "has objects that do not exist"}},
		"an unknown health":                                 {argo("status: Healthy", "status: Unknown"), expectation{verdict.Unknown, "does not know its health"}},
		"no health":                                         {argo("status: Healthy, ", ""), expectation{verdict.Progressing, "has no status yet"}},
		"an Application with an error":                      {argo("status:\n  health", "status:\n  conditions: [{type: InvalidSpecError, message: no such project}, {type: SharedResourceWarning}]\n  health"), expectation{verdict.Failed, "no such project"}},
		"an Application with a warning":                     {argo("status:\n  health", "status:\n  conditions: [{type: SharedResourceWarning, message: shared}]\n  health"), expectation{verdict.Ready, ""}},
		"an Application with several sources":               {severalSources(t), expectation{verdict.Ready, ""}},
		"one of several sources was changed":                {strings.Replace(severalSources(t), "targetRevision: 1.2.3", "targetRevision: 1.2.4", 1), expectation{verdict.Progressing, "was changed"}},
		"an Application that is being deleted":              {argo("namespace: argocd,", `namespace: argocd, deletionTimestamp: "2026-11-21T20:00:00Z",`), expectation{verdict.Progressing, "is being deleted"}},
		"a GitRepo without Bundles":                         {strings.Split(readyRepo, "\n---\n")[0], expectation{verdict.Progressing, "has no Bundles yet"}},
		"a GitRepo that cannot be read":                     {fleet(`{type: Accepted, status: "True"}`, `{type: Accepted, status: "False", message: no such branch}`), expectation{verdict.Failed, "cannot be read: no such branch"}},
		"a ready HelmOp":                                    {readyHelmOp, expectation{verdict.Ready, ""}},
		"a HelmOp whose Bundle has an older chart":          {replaceOnce(t, readyHelmOp, "version: 1.2.3}}", "version: 1.2.4}}"), expectation{verdict.Progressing, "does not have the chart of its HelmOp yet"}},
		"a HelmOp whose Bundle has other values":            {replaceOnce(t, readyHelmOp, "values: {a: 1}", "values: {a: 2}"), expectation{verdict.Progressing, "or not with its values"}},
		"a HelmOp of a range of versions":                   {replaceOnce(t, readyHelmOp, "version: 1.2.3}}", "version: 1.x}}"), expectation{verdict.Ready, ""}},
		"a GitRepo that is paused":                          {fleet("spec: {repo", "spec: {paused: true, repo"), expectation{verdict.Progressing, "is suspended"}},
		"a Bundle of an older commit":                       {fleet("fleet.cattle.io/commit: effd5e", "fleet.cattle.io/commit: 000000"), expectation{verdict.Progressing, "has commit 000000"}},
		"a Bundle that waits for clusters":                  {waitingRepo(t), expectation{verdict.Progressing, "is ready on 0 of 1 clusters"}},
		"a Bundle that could not be applied":                {strings.ReplaceAll(readyRepo, `summary: {ready: 1, desiredReady: 1}`+"\n"+`  conditions: [{type: Ready, status: "True"`, `summary: {errApplied: 1, desiredReady: 1}`+"\n"+`  conditions: [{type: Ready, message: "ErrApplied(1)", status: "False"`), expectation{verdict.Failed, "ErrApplied(1)"}},
		"a BundleDeployment that is not deployed":           {fleet("appliedDeploymentID: s-1:o-1", "appliedDeploymentID: s-0:o-1"), expectation{verdict.Progressing, "has not deployed its present content yet"}},
		"a BundleDeployment that failed":                    {fleet(`{type: Deployed, status: "True"}`, `{type: Deployed, status: "False", message: no space}`), expectation{verdict.Failed, "cannot be deployed: no space"}},
		"a BundleDeployment of another namespace":           {readyRepo + "\n---" + strings.NewReplacer("bundle-namespace: fleet-local", "bundle-namespace: team", "{name: web-web, namespace: cluster", "{name: other, namespace: cluster", "ready: true", "ready: false").Replace(readyRepo[strings.LastIndex(readyRepo, "---")+3:]), expectation{verdict.Ready, ""}},
		"a BundleDeployment that is not ready":              {fleet(`ready: true`, `ready: false`), expectation{verdict.Progressing, "is not ready yet"}},
		"a BundleDeployment that was edited":                {fleet(`nonModified: true`, `nonModified: false`), expectation{verdict.Progressing, "were changed on the cluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judge(t, test.documents)
			if got.Verdict != test.want.verdict || !strings.Contains(got.Message, test.want.reason) || test.want.reason == "" && got.Message != "" {
				t.Errorf("%s: %s, want %+v", got.Verdict, got.Message, test.want)
			}
			if !got.Known || got.Tree != treeA || got.Commit != tip {
				t.Errorf("%+v", got)
			}
		})
	}
}

func replaceOnce(t *testing.T, in, old, by string) string {
	t.Helper()
	if !strings.Contains(in, old) {
		t.Fatalf("%q is not in %s", old, in)
	}
	return strings.Replace(in, old, by, 1)
}

// failSource makes the sources in documents fail with message.
func failSource(documents, message string) string {
	return strings.Replace(
		documents,
		`status: "True", reason: Succeeded, message: stored`,
		`status: "False", reason: GitOperationFailed, message: "`+message+`"`,
		1,
	)
}

// withAttempts adds a history to a Kustomization: the number of attempts at its revision, and their outcome.
func withAttempts(kustomization string, times int, outcome string) string {
	return fmt.Sprintf(`%s
  lastAttemptedRevision: v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b
  history: [{metadata: {revision: v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b}, lastReconciledStatus: %s, totalReconciliations: %d, firstReconciled: "2026-11-21T19:00:00Z"}]`,
		kustomization, outcome, times)
}

// imageRelease returns a HelmRelease of a chart in a registry, and its OCIRepository at the given revision.
func imageRelease(t *testing.T, revision string) string {
	t.Helper()
	release := replaceOnce(
		t,
		readyRelease,
		"chart: {spec: {chart: web, version: 1.2.3, sourceRef: {kind: HelmRepository, name: web}}}",
		"chartRef: {kind: OCIRepository, name: web}",
	)
	release = replaceOnce(
		t,
		release,
		"lastAttemptedRevision: 1.2.3",
		"lastAttemptedRevision: 1.2.3+aaaa\n  lastAttemptedRevisionDigest: sha256:aaaa",
	)
	image := replaceOnce(t, readySource, "kind: GitRepository", "kind: OCIRepository")
	return release + "\n---" + replaceOnce(t, image, "v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b", revision)
}

func resourceStatus(kind, health, message string) string {
	return "\n  resources: [{kind: " + kind + ", namespace: web, name: web, status: Synced, health: {status: " + health + ", message: \"" + message + "\"}}]"
}

func waitingRepo(t *testing.T) string {
	t.Helper()
	repo, bundles, _ := strings.Cut(readyRepo, "\n---\n")
	return repo + "\n---\n" + replaceOnce(t, bundles, "summary: {ready: 1,", "summary: {ready: 0,")
}

func severalSources(t *testing.T) string {
	t.Helper()
	const one = `{repoURL: "https://git.example.com/web", path: web, targetRevision: v1}`
	const sources = `sources: [` + one + `, {repoURL: "https://charts.example.com", chart: web, targetRevision: 1.2.3}]`
	text := replaceOnce(t, readyApplication, "source: "+one, sources)
	text = replaceOnce(
		t,
		text,
		`source: {repoURL: "https://git.example.com/web", path: web, targetRevision: v1, directory: {jsonnet: {}}}`,
		sources,
	)
	return replaceOnce(
		t,
		text,
		"revision: effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b\n    compared",
		"revisions: [effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b, 1.2.3]\n    compared",
	)
}

// The last transition of a condition may be older than the content.
func TestReadySinceIsNotTheLastTransition(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ documents, want string }{
		"HelmRelease":   {readyRelease, "2026-11-21T21:00:00Z"},
		"Application":   {readyApplication, "2026-11-21T20:10:00Z"},
		"Kustomization": {readyKustomization + "\n  history: [{metadata: {revision: v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b}, firstReconciled: \"2026-11-21T20:20:00Z\"}]", "2026-11-21T20:20:00Z"},
	} {
		if got := judge(t, test.documents).Since.Format("2006-01-02T15:04:05Z"); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestAMissingObjectIsNotReady(t *testing.T) {
	t.Parallel()
	got := judge(
		t,
		strings.Replace(readyKustomization, "name: web, namespace: flux-system, gen", "name: other, namespace: flux-system, gen", 1),
	)
	if got.Verdict != verdict.Progressing || got.Message != "Kustomization flux-system/web does not exist" {
		t.Errorf("%+v", got.Status)
	}
}

// An agent may prune the objects of a removed deployment target late.
func TestRemovedObjectsOnAClusterAreReported(t *testing.T) {
	t.Parallel()
	removed := strings.NewReplacer("name: web, namespace", "name: gone, namespace",
		"generation: 2}", "generation: 2, labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone}}").Replace(readyKustomization)
	root := fluxRoot("drone", "web", older, "2026-11-21T18:00:00Z")
	listed := reconciler.Answer{Objects: parseObjects(t, strings.Join([]string{root, readyKustomization, readySource, removed}, "\n---"))}
	in := observe.FleetReports{
		Tip: tip, Types: map[string]string{"drone-1": "drone"},
		Reports:     map[string]observe.ClusterReport{"drone-1": observe.ReadCluster(folder.Location{Branch: "dev"}, "drone", "drone-1", listed)},
		OwnerLabels: []string{"dev"}, HostLabels: map[string]string{"drone": "drone"},
		Commits: map[string]gitops.ReportedCommit{older: {ID: older, Trees: map[string]map[string]string{"drone": {"web": treeA, "gone": treeB}}}},
		Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA,
			Objects: []reconciler.ObjectName{{Kind: "Kustomization", Namespace: "flux-system", Name: "web"}}}},
	}
	result := observe.Observe(in)
	cluster := result.Clusters[0]
	if cluster.Assignments[0].Verdict != verdict.Ready || cluster.Verdict != verdict.Progressing ||
		cluster.Message != "still has what was removed: Kustomization flux-system/gone" {
		t.Errorf("%+v", cluster)
	}
	drift := result.Drift(map[string]bool{"drone/web": true})
	if len(drift) != 1 || len(drift[0].Objects) != 1 || drift[0].Clusters[0] != "drone-1" {
		t.Errorf("%+v", drift)
	}
}

// The reason does not name the author of the change: one commit with its records and folders does not show it.
func TestAFolderUnlikeItsRecordIsDrift(t *testing.T) {
	t.Parallel()
	result := observe.Observe(observe.FleetReports{Tip: tip, Folders: []observe.WrittenFolder{
		{Host: "drone", DeploymentTarget: "changed", Tree: treeA, Recorded: treeB},
		{Host: "drone", DeploymentTarget: "gone", Recorded: treeA},
		{Host: "drone", DeploymentTarget: "same", Tree: treeA, Recorded: treeA},
	}})
	var got []string
	for _, difference := range result.Drift(map[string]bool{"drone/changed": true, "drone/gone": true, "drone/same": true}) {
		got = append(got, difference.Assignment+": "+difference.Reason)
	}
	want := []string{
		"drone/changed: the folder on the branch is not what its record says",
		"drone/gone: the branch does not have the folder that its record lists",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got drift %q, want %q", got, want)
	}
}
