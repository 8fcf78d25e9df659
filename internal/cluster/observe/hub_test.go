package observe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// hubApplication returns a healthy and synced Application of a hub.
func hubApplication(name, owner, destination, source, revision string) string {
	return fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[1]s, namespace: argocd, %[2]s}
spec: {destination: {%[3]s}, source: {%[4]s}}
status:
  health: {status: Healthy, lastTransitionTime: "2026-11-21T20:00:00Z"}
  reconciledAt: "2026-11-21T20:30:00Z"
  operationState: {phase: Succeeded, startedAt: "2026-11-21T20:00:00Z", finishedAt: "2026-11-21T20:10:00Z"}
  history: [{revision: "%[5]s", deployedAt: "2026-11-21T20:10:00Z"}]
  sync: {status: Synced, revision: "%[5]s", comparedTo: {destination: {%[3]s}, source: {%[4]s}}}`, name, owner, destination, source, revision)
}

// hubSet is an ApplicationSet. It makes the Application web of each cluster.
const hubSet = `
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  generators: [{clusters: {}}]
  template: {metadata: {name: "web-{{.nameNormalized}}"}, spec: {destination: {name: "{{.name}}"}, source: {repoURL: "https://git.example.com/web", path: ".", targetRevision: v1}}}
status:
  conditions: [{type: ErrorOccurred, status: "False"}, {type: ResourcesUpToDate, status: "True", lastTransitionTime: "2026-11-21T20:00:00Z"}]`

// A hub applies the reconcilers of a folder to itself and the other files to the cluster. The content has arrived if both are applied.
func TestAHubAppliesAFolderInTwoPlaces(t *testing.T) {
	t.Parallel()
	const (
		bySet    = "labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone}, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: web, uid: x, controller: true}]"
		ofGitops = `repoURL: "https://git.example.com/gitops", path: drone, targetRevision: dev, directory: {recurse: true, `
	)
	spoke := func(commit string) string {
		return hubApplication("flotilla-drone-1", "labels: {a: b}", "name: drone-1", ofGitops+`exclude: "*/reconciler.*"}`, commit)
	}
	hub := func(commit string) string {
		return hubApplication(
			"flotilla-drone-hub",
			"labels: {a: b}",
			`server: "https://kubernetes.default.svc"`,
			ofGitops+`include: "*/reconciler.*"}`,
			commit,
		)
	}
	web := hubApplication(
		"web-drone-1",
		bySet,
		"name: drone-1",
		`repoURL: "https://git.example.com/web", path: ".", targetRevision: v1`,
		older,
	)
	both := spoke(tip) + "\n---" + hub(tip) + "\n---"
	failingSet := strings.Replace(
		hubSet,
		`{type: ErrorOccurred, status: "False"}, {type: ResourcesUpToDate, status: "True"`,
		`{type: ErrorOccurred, status: "True", message: no such project}, {type: ResourcesUpToDate, status: "False"`,
		1,
	)
	for name, test := range map[string]struct {
		objects string
		verdict verdict.Verdict
		message string
	}{
		"the ApplicationSet has not reached the Application yet": {both + strings.Replace(web, "targetRevision: v1}", "targetRevision: v0}", 2) + "\n---" + hubSet, verdict.Progressing,
			"ApplicationSet argocd/web has not given Application argocd/web-drone-1 its present content yet"},
		"the ApplicationSet fails before it has reached the Application": {both + strings.Replace(web, "targetRevision: v1}", "targetRevision: v0}", 2) + "\n---" + failingSet, verdict.Failed,
			"ApplicationSet argocd/web cannot make its Applications: no such project"},
		"the ApplicationSet fails for other clusters": {both + web + "\n---" + failingSet, verdict.Ready, ""},
		"the ApplicationSet fails without an Application": {spoke(tip) + "\n---" + hub(tip) + "\n---" + failingSet, verdict.Failed,
			"ApplicationSet argocd/web cannot make its Applications: no such project"},
		"the ApplicationSet was removed": {both + web + "\n---" + strings.Replace(hubSet, "name: web,", "name: other,", 1), verdict.Progressing,
			"Application argocd/web-drone-1 depends on ApplicationSet argocd/web, which does not exist"},
		"the ApplicationSet patches": {both + web + "\n---" + strings.Replace(hubSet, "spec:\n", "spec:\n  templatePatch: x\n", 1), verdict.Unknown,
			"ApplicationSet argocd/web changes what it makes by more than its template, so Application argocd/web-drone-1 cannot be compared with it"},
		"the hub itself cannot apply the folder": {spoke(tip) + "\n---" + strings.NewReplacer("phase: Succeeded", "phase: Failed, message: no such field, syncResult: {revision: \""+tip+"\"}",
			"status: Synced, revision: \""+older, "status: OutOfSync, revision: \""+tip).Replace(hub(older)) + "\n---" + web + "\n---" + hubSet, verdict.Failed,
			"commit 1111111 cannot be applied to the hub itself: Application argocd/flotilla-drone-hub cannot be synced: no such field"},

		"both have the content":          {spoke(tip) + "\n---" + hub(tip) + "\n---" + web, verdict.Ready, ""},
		"the hub has another commit":     {spoke(tip) + "\n---" + hub(older) + "\n---" + web, verdict.Behind, "the hub itself has commit " + older[:7]},
		"the cluster has another commit": {spoke(older) + "\n---" + hub(tip) + "\n---" + web, verdict.Behind, "has commit " + older[:7]},
		"no Application for the cluster": {spoke(tip) + "\n---" + hub(tip), verdict.Progressing, "ApplicationSet argocd/web has made no Application for the cluster yet"},
	} {
		if !strings.Contains(test.objects, "kind: ApplicationSet\nmeta") {
			test.objects += "\n---" + hubSet
		}
		listed := reconciler.Answer{Objects: parseObjects(t, test.objects[1:])}
		reports := observe.ReadHub(
			folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"},
			map[string]string{"drone-1": "drone"},
			listed,
		)
		result := observe.Observe(observe.FleetReports{
			Tip: tip, Types: map[string]string{"drone-1": "drone"}, Reports: reports,
			OwnerLabels: []string{"dev"}, HostLabels: map[string]string{"drone": "drone"},
			Commits: map[string]gitops.ReportedCommit{
				older: {ID: older, Trees: map[string]map[string]string{"drone": {"web": treeB}}},
				tip:   {ID: tip, Trees: map[string]map[string]string{"drone": {"web": treeA}}},
			},
			Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA,
				Objects: []reconciler.ObjectName{{Kind: "ApplicationSet", Namespace: "argocd", Name: "web"}}}},
		})
		got := result.Clusters[0].Assignments[0]
		if got.Verdict != test.verdict || got.Message != test.message || len(result.Clusters[0].Leftover) > 0 {
			t.Errorf("%s: %s, %q, left over %v", name, got.Verdict, got.Message, result.Clusters[0].Leftover)
		}
		runs := reconciler.Running{}
		if strings.Contains(test.objects, "name: web-drone-1") {
			if runs = (reconciler.Running{Version: "v1", Revision: older}); strings.Contains(test.objects, "targetRevision: v0") {
				runs.Version = "v0"
			}
		}
		if got.Running != runs {
			t.Errorf("%s: %+v runs, want %+v", name, got.Running, runs)
		}
	}
}

// A cluster without assignments of its own has no folder of its own. Its agent reports a missing path.
func TestAClusterMayHaveNoFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	const missing = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flotilla-cluster, namespace: flux-system, generation: 1}
spec: {path: ./clusters/drone-1, wait: true, sourceRef: {kind: GitRepository, name: flotilla}}
status:
  observedGeneration: 1
  conditions: [{type: Ready, status: "False", reason: ArtifactFailed, message: "kustomization path not found: stat /tmp/x/clusters/drone-1: no such file or directory", observedGeneration: 1, lastTransitionTime: "2026-11-21T20:00:00Z"}]`
	for name, test := range map[string]struct {
		objects string
		want    verdict.Verdict
	}{
		"no folder of its own": {readySource + "\n---" + strings.NewReplacer("name: web}", "name: web}", "name: web", "name: flotilla-cluster-type", "path: ./web", "path: ./drone").Replace(readyKustomization) + "\n---" + missing, verdict.Ready},
		"no folder at all":     {missing, verdict.Failed},
	} {
		report := observe.ReadCluster(
			folder.Location{Branch: "dev"},
			"drone",
			"drone-1",
			reconciler.Answer{Objects: parseObjects(t, test.objects[1:])},
		)
		if !report.Applied["clusters/drone-1"].NoFolder || report.Applied["drone"].NoFolder {
			t.Errorf("%s: %+v", name, report.Applied)
		}
		result := observe.Observe(
			observe.FleetReports{Tip: tip, Types: map[string]string{"drone-1": "drone"}, Reports: map[string]observe.ClusterReport{"drone-1": report}},
		)
		if got := result.Clusters[0]; got.Verdict != test.want {
			t.Errorf("%s: %s, %s", name, got.Verdict, got.Message)
		}
	}
}

// Without records, UnreadyObjects finds the objects of a folder by their labels and by the resources of the hub's own Application.
func TestMissingObjectsOnAHubAreNotReady(t *testing.T) {
	t.Parallel()
	const (
		bySet     = "labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone}, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: web, uid: x, controller: true}]"
		ofCluster = "labels: {flotilla.dev/owner: dev, flotilla.dev/host: clusters.drone-1}"
		ofGitops  = `repoURL: "https://git.example.com/gitops", path: drone, targetRevision: dev, directory: {recurse: true, `
		web       = `repoURL: "https://git.example.com/web", path: ".", targetRevision: v1`
	)
	spoke := hubApplication("flotilla-drone-1", "labels: {flotilla.dev/host: drone}", "name: drone-1", ofGitops+`exclude: "*/reconciler.*"}`, tip)
	hub := hubApplication(
		"flotilla-drone-hub",
		"labels: {a: b}",
		`server: "https://kubernetes.default.svc"`,
		ofGitops+`include: "*/reconciler.*"}`,
		tip,
	) +
		"\n  resources: [{kind: ApplicationSet, namespace: argocd, name: web, status: Synced}]"
	application := hubApplication("web-drone-1", bySet, "name: drone-1", web, older)
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"all is ready":                           {application, nil},
		"no Application yet":                     {hubApplication("web-drone-2", bySet, "name: drone-2", web, older), []string{"ApplicationSet argocd/web has made no Application for the cluster yet"}},
		"an unready Application":                 {replaceOnce(t, application, "status: Healthy", "status: Progressing"), []string{"Application argocd/web-drone-1 is progressing"}},
		"an unready Application of another host": {application + "\n---" + replaceOnce(t, hubApplication("own", ofCluster, "name: drone-1", web, older), "status: Healthy", "status: Degraded"), nil},
	} {
		listed := reconciler.Answer{Objects: parseObjects(t, (spoke + "\n---" + hub + "\n---" + hubSet + "\n---" + test.objects)[1:])}
		report := observe.ReadHub(folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}, map[string]string{"drone-1": "drone"}, listed)["drone-1"]
		if got := report.UnreadyObjects("drone", "drone"); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// An adopted Application may name its cluster by a server. The cluster is then found by the label of the host.
func TestAnApplicationOnAHubMayNameItsServer(t *testing.T) {
	t.Parallel()
	const ofGitops = `repoURL: "https://git.example.com/gitops", path: drone, targetRevision: dev, directory: {recurse: true, `
	const ofHost = "labels: {flotilla.dev/host: drone}"
	roots := hubApplication("a-hub", ofHost, `server: "https://kubernetes.default.svc"`, ofGitops+`include: "*/reconciler.*"}`, tip) +
		"\n---" + hubApplication("b-drone-1", ofHost, "name: drone-1", ofGitops+`exclude: "*/reconciler.*"}`, tip)
	web := func(host, health string) string {
		text := hubApplication(host+"-web", "labels: {flotilla.dev/owner: dev, flotilla.dev/host: "+host+"}", `server: "https://10.0.0.1"`,
			`repoURL: "https://git.example.com/web", path: ".", targetRevision: v1`, older)
		return "\n---" + strings.Replace(text, "Healthy", health, 1)
	}
	types := map[string]string{"drone-1": "drone", "camera-1": "camera"}
	for name, test := range map[string]struct {
		others, message string
		verdict         verdict.Verdict
	}{
		"all are healthy": {web("camera", "Healthy"), "", verdict.Ready},
		"an Application of another cluster is degraded": {web("camera", "Degraded"), "", verdict.Ready},
		"the Application is degraded":                   {web("drone", "Degraded"), "Application argocd/drone-web is degraded", verdict.Failed},
	} {
		text := roots + test.others
		if test.verdict == verdict.Ready {
			text += web("drone", "Healthy")
		}
		result := observe.Observe(observe.FleetReports{
			Tip: tip, Types: types, OwnerLabels: []string{"dev"}, HostLabels: map[string]string{"drone": "drone", "camera": "camera"},
			Reports: observe.ReadHub(folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}, types,
				reconciler.Answer{Objects: parseObjects(t, text[1:])}),
			Commits: map[string]gitops.ReportedCommit{tip: {ID: tip, Trees: map[string]map[string]string{"drone": {"web": treeA}}}},
			Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA,
				Objects: []reconciler.ObjectName{{Kind: "Application", Namespace: "argocd", Name: "drone-web"}}}},
		})
		at := slices.IndexFunc(result.Clusters, func(one observe.ClusterResult) bool { return one.Name == "drone-1" })
		if got := result.Clusters[at].Assignments[0]; got.Verdict != test.verdict || got.Message != test.message {
			t.Errorf("%s: %s, %q", name, got.Verdict, got.Message)
		}
	}
}
