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

// The objects that deploy a folder's final objects, as their controllers leave them: commit c07fb changed the folder, and the later
// commit cd5cf changed another folder.
const (
	followingKustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system, generation: 2}
spec:
  images: [{name: flotilla.dev/objects, newTag: "0123"}]
  interval: 10m
  path: ./fleet/drone/web/objects
  sourceRef: {kind: GitRepository, name: flotilla}
  timeout: 2m
  wait: true
status:
  observedGeneration: 2
  lastAppliedRevision: dev@sha1:` + cd5cf + `
  lastAttemptedRevision: dev@sha1:` + cd5cf + `
  conditions:
    - {type: Ready, status: "True", reason: ReconciliationSucceeded, message: "Applied revision: dev@sha1:` + cd5cf + `", observedGeneration: 2, lastTransitionTime: "2026-11-21T21:00:03Z"}
    - {type: Healthy, status: "True", reason: Succeeded, message: Health check passed in 5ms, observedGeneration: 2, lastTransitionTime: "2026-11-21T21:00:03Z"}
  history:
    - {digest: "sha256:0a", firstReconciled: "2026-11-21T20:00:05Z", lastReconciled: "2026-11-21T21:00:03Z", lastReconciledDuration: 1s, lastReconciledStatus: ReconciliationSucceeded, metadata: {revision: "dev@sha1:` + cd5cf + `"}, totalReconciliations: 7}
    - {digest: "sha256:0b", firstReconciled: "2026-11-21T18:00:00Z", lastReconciled: "2026-11-21T19:59:00Z", lastReconciledDuration: 1s, lastReconciledStatus: ReconciliationSucceeded, metadata: {revision: "dev@sha1:` + c2529 + `"}, totalReconciliations: 12}`
	followingRelease = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system, generation: 1}
spec:
  chart: {spec: {chart: ./fleet/drone/web/objects, reconcileStrategy: ChartVersion, sourceRef: {kind: GitRepository, name: flotilla}}}
  values: {objects: "0123"}
status:
  observedGeneration: 1
  helmChart: flux-system/flux-system-web
  lastAttemptedRevision: 1.2.3+0123
  history: [{chartName: till, chartVersion: 1.2.3+0123, appVersion: "7", status: deployed, lastDeployed: "2026-11-21T20:00:05Z"}]
  conditions: [{type: Ready, status: "True", reason: UpgradeSucceeded, message: upgraded, observedGeneration: 1, lastTransitionTime: "2026-11-21T20:00:00Z"}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: flux-system-web, namespace: flux-system, generation: 1}
spec: {chart: ./fleet/drone/web/objects, reconcileStrategy: ChartVersion, version: "*", sourceRef: {kind: GitRepository, name: flotilla}}
status:
  observedGeneration: 1
  observedChartName: till
  observedSourceArtifactRevision: dev@sha1:` + cd5cf + `
  artifact: {revision: 1.2.3+0123, lastUpdateTime: "2026-11-21T20:00:02Z"}
  conditions: [{type: Ready, status: "True", reason: ChartPackageSucceeded, message: packaged, observedGeneration: 1, lastTransitionTime: "2026-11-21T20:00:02Z"}]`
	followingApplication = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, generation: 25}
spec:
  destination: {server: "https://kubernetes.default.svc", namespace: web}
  source: {repoURL: "https://git.example.com/gitops", path: fleet/drone/web/objects, targetRevision: dev, kustomize: {images: ["flotilla.dev/objects:0123"]}}
status:
  health: {status: Healthy, lastTransitionTime: "2026-11-21T20:00:05Z"}
  reconciledAt: "2026-11-21T21:00:03Z"
  operationState:
    phase: Succeeded
    startedAt: "2026-11-21T20:00:00Z"
    finishedAt: "2026-11-21T20:00:04Z"
    message: successfully synced (all tasks run)
    operation: {sync: {revision: ` + c07fb + `}}
    syncResult: {revision: ` + c07fb + `}
  history: [{revision: ` + c07fb + `, deployedAt: "2026-11-21T20:00:04Z"}]
  summary: {images: ["registry.example.com/till:7"]}
  sync:
    status: Synced
    revision: ` + cd5cf + `
    comparedTo:
      destination: {server: "https://kubernetes.default.svc", namespace: web}
      source: {repoURL: "https://git.example.com/gitops", path: fleet/drone/web/objects, targetRevision: dev, kustomize: {images: ["flotilla.dev/objects:0123"]}}`
)

var gitopsRepository = fluxSource(
	"flotilla", "https://git.example.com/gitops.git", "{branch: dev}", "dev@sha1:"+cd514, "2026-11-21T21:05:00Z",
)

// judgeFinalObjects judges a folder with the final objects of version 1.2.3. The cluster has applied its host's folder at the tip, cd514.
// trees has the tree of the folder at each commit.
func judgeFinalObjects(t *testing.T, documents string, trees map[string]string) observe.AssignmentResult {
	t.Helper()
	root := fluxRoot("./fleet/drone", "flotilla", cd514, "2026-11-21T21:05:02Z") + "\n---"
	listed := reconciler.Answer{Objects: parseObjects(t, root+documents+"\n---"+gitopsRepository)}
	first := listed.Objects[1]
	in := observe.FleetReports{
		Time: clockTime(t, "21:06"), Tip: cd514, Types: map[string]string{"drone-1": "drone"}, Commits: map[string]gitops.ReportedCommit{},
		Reports: map[string]observe.ClusterReport{"drone-1": observe.ReadCluster(
			folder.Location{URL: "https://git.example.com/gitops", Branch: "dev", Path: "fleet"}, "drone", "drone-1", listed)},
		Folders: []observe.WrittenFolder{{
			Host: "drone", DeploymentTarget: "web", Tree: treeA, Wanted: "1.2.3", Changed: clockTime(t, "19:59"),
			Objects: []reconciler.ObjectName{{Kind: first.GetKind(), Namespace: first.GetNamespace(), Name: "web"}},
		}},
	}
	report := in.Reports["drone-1"]
	for _, commit := range report.Commits(in.Folders) {
		if tree, ok := trees[commit]; ok {
			in.Commits[commit] = gitops.ReportedCommit{ID: commit, Trees: map[string]map[string]string{"drone": {"web": tree}}}
		}
	}
	return observe.Observe(in).Clusters[0].Assignments[0]
}

// An agent may be at any commit with the wanted folder. The assignment stays ready, and the time of ready does not change.
func TestFinalObjectsStayReadyAfterOtherCommits(t *testing.T) {
	t.Parallel()
	same := map[string]string{c07fb: treeA, cd5cf: treeA, cd514: treeA}
	for name, test := range map[string]struct{ documents, since, runs string }{
		"Kustomization": {followingKustomization, "20:00:05", "1.2.3"},
		"HelmRelease":   {followingRelease, "20:00:05", "1.2.3 0123 till 7"},
		"Application":   {followingApplication, "20:00:05", "1.2.3 registry.example.com/till:7"},
	} {
		got := judgeFinalObjects(t, test.documents, same)
		if got.Verdict != verdict.Ready || got.Message != "" || got.Since.Format(time.TimeOnly) != test.since || got.OfRoot {
			t.Errorf("%s: %+v, want ready since %s", name, got.Status, test.since)
		}
		runs := strings.Join(
			strings.Fields(
				strings.Join([]string{got.Running.Version, got.Running.Revision, got.Running.Chart, got.Running.AppVersion, got.Running.Images}, " "),
			),
			" ",
		)
		if runs != test.runs {
			t.Errorf("%s: it runs %q, want %q", name, runs, test.runs)
		}
	}
}

// A status of the previous content, ready or failed, does not count for the wanted content.
func TestFinalObjectsOfAnOlderCommitAreNotReady(t *testing.T) {
	t.Parallel()
	before := map[string]string{c07fb: treeB, cd5cf: treeB, cd514: treeA}
	degraded := replaceOnce(t, followingApplication, "status: Healthy", "status: Degraded")
	unhealthy := replaceOnce(
		t,
		followingKustomization,
		`status: "True", reason: ReconciliationSucceeded`,
		`status: "False", reason: HealthCheckFailed`,
	)
	missingPath := replaceOnce(
		t,
		followingApplication,
		"status:\n  health",
		"status:\n  conditions: [{type: ComparisonError, message: \"fleet/drone/web/objects: app path does not exist\"}]\n  health",
	)
	noFolder := replaceOnce(
		t,
		followingKustomization,
		`status: "True", reason: ReconciliationSucceeded, message: "Applied`,
		`status: "False", reason: ArtifactFailed, message: "kustomization path not found: Applied`,
	)
	for name, documents := range map[string]string{
		"Kustomization": followingKustomization, "HelmRelease": followingRelease, "Application": followingApplication,
		"a failed Kustomization": unhealthy, "a failed Application": degraded,
	} {
		got := judgeFinalObjects(t, documents, before)
		if got.Verdict != verdict.Progressing || !strings.Contains(got.Message, "has commit "+cd5cf[:7]+", in which its folder is another one") {
			t.Errorf("%s: %+v", name, got.Status)
		}
		if running := got.Running; got.Folder.Objects[0].Kind != "HelmRelease" && running.Version+running.Revision != "" {
			t.Errorf("%s: got running version %+v, want none", name, running)
		}
	}
	for name, documents := range map[string]string{"Kustomization": noFolder, "Application": missingPath} {
		if got := judgeFinalObjects(t, documents, before); got.Verdict != verdict.Progressing {
			t.Errorf("%s without its folder: %+v", name, got.Status)
		}
	}
	same := map[string]string{c07fb: treeA, cd5cf: treeA, cd514: treeA}
	for name, documents := range map[string]string{"Kustomization": unhealthy, "Application": degraded} {
		if got := judgeFinalObjects(t, documents, same); got.Verdict != verdict.Failed || got.OfRoot {
			t.Errorf("%s that failed with the wanted content: %+v", name, got.Status)
		}
	}
	rewritten := map[string]string{cd514: treeA}
	if got := judgeFinalObjects(t, followingKustomization, rewritten); got.Verdict != verdict.Unknown ||
		!strings.Contains(got.Message, "cannot be compared: the branch does not have commit "+cd5cf[:7]) {
		t.Errorf("a commit that is not on the branch: %+v", got.Status)
	}
}

// Flux updates the Ready condition at every interval. The history of the Kustomization has the arrival time of the content.
func TestAKustomizationIsReadySinceItsContentArrived(t *testing.T) {
	t.Parallel()
	const other = `firstReconciled: "2026-11-21T18:00:00Z", lastReconciled: "2026-11-21T19:59:00Z"`
	for name, test := range map[string]struct{ by, want string }{
		"the same content at every interval":                      {other, "20:00:05"},
		"other content in between, a short time ago":              {`firstReconciled: "2026-11-21T18:00:00Z", lastReconciled: "2026-11-21T20:58:00Z"`, "21:00:03"},
		"other content in between, and then many reconciliations": {`firstReconciled: "2026-11-21T18:00:00Z", lastReconciled: "2026-11-21T20:30:00Z"`, "20:42:00"},
		"other content without a time":                            {`firstReconciled: "x"`, "20:00:05"},
		"no history":                                              {"", "21:00:03"},
	} {
		documents := replaceOnce(t, followingKustomization, other, test.by)
		if test.by == "" { // Flux 2.6
			documents, _, _ = strings.Cut(followingKustomization, "\n  history:")
		}
		got := judgeFinalObjects(t, documents, map[string]string{cd5cf: treeA, cd514: treeA})
		if got.Verdict != verdict.Ready || got.Since.Format(time.TimeOnly) != test.want {
			t.Errorf("%s: %+v, want %s", name, got.Status, test.want)
		}
	}
}

// On a hub, an ApplicationSet makes one Application for each cluster. The Application deploys the final objects.
func TestFinalObjectsOnAHub(t *testing.T) {
	t.Parallel()
	const (
		bySet    = "labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone}, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: web, uid: x, controller: true}]"
		atGitops = `repoURL: "https://git.example.com/gitops", path: drone, targetRevision: dev, directory: {recurse: true, `
		source   = `repoURL: "https://git.example.com/gitops", path: drone/web/objects, targetRevision: dev, kustomize: {images: ["flotilla.dev/objects:0123"]}`
	)
	set := strings.Replace(hubSet, `repoURL: "https://git.example.com/web", path: ".", targetRevision: v1`, source, 1)
	for name, test := range map[string]struct {
		commit  string
		verdict verdict.Verdict
		message string
	}{
		"a commit with the same content":   {cd5cf, verdict.Ready, ""},
		"a commit with the content before": {c2529, verdict.Progressing, "ApplicationSet argocd/web has commit 2529e4d, in which its folder is another one"},
	} {
		documents := strings.Join([]string{
			hubApplication("flotilla-drone-1", "labels: {a: b}", "name: drone-1", atGitops+`exclude: "*/reconciler.*"}`, cd514),
			hubApplication(
				"flotilla-drone-hub",
				"labels: {a: b}",
				`server: "https://kubernetes.default.svc"`,
				atGitops+`include: "*/reconciler.*"}`,
				cd514,
			),
			hubApplication("web-drone-1", bySet, "name: drone-1", source, test.commit), set,
		}, "\n---")
		in := observe.FleetReports{
			Tip: cd514, Types: map[string]string{"drone-1": "drone"}, Commits: map[string]gitops.ReportedCommit{},
			Reports: observe.ReadHub(
				folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"},
				map[string]string{"drone-1": "drone"},
				reconciler.Answer{Objects: parseObjects(t, documents[1:])},
			),
			Folders: []observe.WrittenFolder{
				{
					Host:             "drone",
					DeploymentTarget: "web",
					Tree:             treeA,
					Objects:          []reconciler.ObjectName{{Kind: "ApplicationSet", Namespace: "argocd", Name: "web"}},
				},
			},
		}
		report := in.Reports["drone-1"]
		for _, commit := range report.Commits(in.Folders) {
			in.Commits[commit] = gitops.ReportedCommit{
				ID:    commit,
				Trees: map[string]map[string]string{"drone": {"web": map[bool]string{true: treeB, false: treeA}[commit == c2529]}},
			}
		}
		if got := observe.Observe(in).Clusters[0].Assignments[0]; got.Verdict != test.verdict || got.Message != test.message {
			t.Errorf("%s: %+v", name, got.Status)
		}
	}
}
