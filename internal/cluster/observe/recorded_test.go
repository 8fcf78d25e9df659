package observe_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// readRecorded reads objects that were recorded on clusters with real controllers.
func readRecorded(t *testing.T, pattern string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// The commits of the recorded branch.
const (
	c07fb = "07fb32228e5a5613525e788b19e11c37f9ebacf9"
	c2529 = "2529e4d886ed94a1d729f5edc8c79c576cdd8c20" // both targets were removed
	cd5cf = "d5cff2f2931bdf5ae15a5fd5090e6c1577ca2461"
	c89a4 = "89a4a7634b9238dd410a9562d3aca8cb34a480da" // both targets were removed
	cd514 = "d514640d859332930b99d127f074ab0ae773336c"
	c07c0 = "07c08823b85e6adbab8b881d449749bde35409b6" // the configuration was changed
	cfa3a = "fa3ae63409a23e2b45cad9afa04b6f5b13f4bd49" // the configuration was changed again
	c7a33 = "7a33f4a4ff0941f885c441fbcb729522b7af0ead"
)

var recordedLocation = folder.Location{URL: "http://127.0.0.1:13000/flotadmin/gitops.git", Branch: "dev"}

// recordedInput returns the reports of the recorded clusters argo-1 and flux-1. trees has the tree of both targets at each commit.
func recordedInput(t *testing.T, moment, tip string, trees map[string]string) observe.FleetReports {
	t.Helper()
	listed := readRecorded(t, moment+"/*.json")
	in := observe.FleetReports{
		Time: time.Date(2026, 11, 21, 20, 30, 0, 0, time.UTC), Tip: tip,
		Types:   map[string]string{"argo-1": "argo", "flux-1": "flux"},
		Reports: map[string]observe.ClusterReport{}, Commits: map[string]gitops.ReportedCommit{},
	}
	for commit, tree := range trees {
		at := map[string]map[string]string{"argo": {}, "flux": {}}
		for _, target := range []string{"db-main", "web-main"} {
			if tree != "" {
				at["argo"][target], at["flux"][target] = tree, tree
			}
		}
		in.Commits[commit] = gitops.ReportedCommit{ID: commit, Trees: at}
	}
	for _, target := range []string{"db-main", "web-main"} {
		if trees[tip] == "" {
			break
		}
		in.Folders = append(in.Folders,
			observe.WrittenFolder{Host: "argo", DeploymentTarget: target, Tree: trees[tip], Namespace: "dev-argo-" + target,
				Objects: []reconciler.ObjectName{{Kind: "Application", Namespace: "argocd", Name: "dev-argo-" + target}}},
			observe.WrittenFolder{Host: "flux", DeploymentTarget: target, Tree: trees[tip], Namespace: "dev-flux-" + target,
				Objects: []reconciler.ObjectName{{Kind: "Kustomization", Namespace: "flux-system", Name: "dev-flux-" + target}}})
	}
	for cluster, clusterType := range in.Types {
		in.Reports[cluster] = observe.ReadCluster(recordedLocation, clusterType, cluster, reconciler.Answer{Objects: listed})
	}
	return in
}

// expectation has the expected verdict and a part of the expected reason.
type expectation struct {
	verdict verdict.Verdict
	reason  string
}

func checkVerdicts(t *testing.T, result *observe.Observation, want map[string]expectation) {
	t.Helper()
	got := map[string]verdict.Status{}
	for _, cluster := range result.Clusters {
		got[cluster.Name] = cluster.Status
		for _, assignment := range cluster.Assignments {
			got[cluster.Name+" "+assignment.Key] = assignment.Status
		}
	}
	for name, want := range want {
		status, ok := got[name]
		if !ok || status.Verdict != want.verdict || !strings.Contains(status.Message, want.reason) || want.reason == "" && status.Message != "" {
			t.Errorf("%s is %+v, want %s: %s", name, status, want.verdict, want.reason)
		}
		if status.Since.IsZero() {
			t.Errorf("%s has no time", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("got an unexpected verdict of %s", name)
	}
}

func TestRecordedObjectsLeadToVerdicts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		moment, tip string
		trees       map[string]string
		want        map[string]expectation
	}{
		"everything is ready": {"1-ready", c07fb, map[string]string{c07fb: treeA}, map[string]expectation{
			"argo-1": {verdict.Ready, ""}, "argo-1 argo/db-main": {verdict.Ready, ""}, "argo-1 argo/web-main": {verdict.Ready, ""},
			"flux-1": {verdict.Ready, ""}, "flux-1 flux/db-main": {verdict.Ready, ""}, "flux-1 flux/web-main": {verdict.Ready, ""},
		}},
		"everything is ready, and the branch has moved on elsewhere": {"1-ready", cd5cf, map[string]string{c07fb: treeA, cd5cf: treeA}, map[string]expectation{
			"argo-1": {verdict.Ready, ""}, "argo-1 argo/db-main": {verdict.Ready, ""}, "argo-1 argo/web-main": {verdict.Ready, ""},
			"flux-1": {verdict.Ready, ""}, "flux-1 flux/db-main": {verdict.Ready, ""}, "flux-1 flux/web-main": {verdict.Ready, ""},
		}},
		"other content is wanted": {"1-ready", cd5cf, map[string]string{c07fb: treeA, cd5cf: treeB}, map[string]expectation{
			"argo-1":               {verdict.Behind, "has commit 07fb322"},
			"argo-1 argo/db-main":  {verdict.Behind, "has commit 07fb322"},
			"argo-1 argo/web-main": {verdict.Behind, "has commit 07fb322"},
			"flux-1":               {verdict.Behind, "has commit 07fb322"},
			"flux-1 flux/db-main":  {verdict.Behind, "has commit 07fb322"},
			"flux-1 flux/web-main": {verdict.Behind, "has commit 07fb322"},
		}},
		"the branch was rewritten": {"1-ready", cd5cf, map[string]string{cd5cf: treeB}, map[string]expectation{
			"argo-1":               {verdict.Unknown, "what the cluster has applied cannot be compared: the branch does not have commit 07fb322"},
			"argo-1 argo/db-main":  {verdict.Unknown, "the branch does not have commit 07fb322"},
			"argo-1 argo/web-main": {verdict.Unknown, "the branch does not have commit 07fb322"},
			"flux-1":               {verdict.Unknown, "the branch does not have commit 07fb322"},
			"flux-1 flux/db-main":  {verdict.Unknown, "the branch does not have commit 07fb322"},
			"flux-1 flux/web-main": {verdict.Unknown, "the branch does not have commit 07fb322"},
		}},
		"the first deployment": {"2-first-deploy-not-ready", cd5cf, map[string]string{cd5cf: treeA, c2529: "", c07fb: treeB}, map[string]expectation{
			"argo-1":               {verdict.Progressing, "Application argocd/dev-argo-db-main is progressing"},
			"argo-1 argo/db-main":  {verdict.Progressing, "Application argocd/dev-argo-db-main is progressing"},
			"argo-1 argo/web-main": {verdict.Ready, ""},
			"flux-1":               {verdict.Behind, "has commit 2529e4d"},
			"flux-1 flux/db-main":  {verdict.Behind, "has commit 2529e4d"},
			"flux-1 flux/web-main": {verdict.Behind, "has commit 2529e4d"},
		}},
		"a new commit waits": {"3-new-commit-waits", cd5cf, map[string]string{cd5cf: treeA, c2529: "", c89a4: ""}, map[string]expectation{
			"argo-1":               {verdict.Progressing, "Application argocd/dev-argo-db-main is progressing"},
			"argo-1 argo/db-main":  {verdict.Progressing, "Application argocd/dev-argo-db-main is progressing"},
			"argo-1 argo/web-main": {verdict.Ready, ""},
			"flux-1":               {verdict.Progressing, "Kustomization flux-system/dev-flux-db-main is not ready yet: Running health checks for revision main@sha1:70bd5d4"},
			"flux-1 flux/db-main":  {verdict.Progressing, "Kustomization flux-system/dev-flux-db-main is not ready yet: Running health checks"},
			"flux-1 flux/web-main": {verdict.Progressing, "dependency 'flux-system/dev-flux-db-main' is not ready"},
		}},
		"removed objects are still there": {"3-new-commit-waits", c89a4, map[string]string{cd5cf: treeA, c2529: "", c89a4: ""}, map[string]expectation{
			"argo-1": {verdict.Progressing, "is out of sync"},
			"flux-1": {verdict.Progressing, "Running health checks for revision dev@sha1:d5cff2f"},
		}},
		"a wave waits": {"4-argocd-waits-for-a-wave", cd514, map[string]string{cd514: treeA, c07c0: treeB, c89a4: "", cd5cf: treeA, c2529: ""}, map[string]expectation{
			"argo-1":               {verdict.Behind, "commit d514640 is being applied"},
			"argo-1 argo/db-main":  {verdict.Progressing, "Application argocd/dev-argo-db-main is progressing"},
			"argo-1 argo/web-main": {verdict.Behind, "commit d514640 is being applied: Application argocd/flotilla-dev-argo is being synced: waiting for healthy state of argoproj.io/Application/dev-argo-db-main"},
			"flux-1":               {verdict.Behind, "has commit 07c0882"},
			"flux-1 flux/db-main":  {verdict.Behind, "has commit 07c0882"},
			"flux-1 flux/web-main": {verdict.Behind, "has commit 07c0882"},
		}},
		"ready again": {"5-ready-again", cfa3a, map[string]string{cfa3a: treeA, cd5cf: treeB}, map[string]expectation{
			"argo-1": {verdict.Ready, ""}, "argo-1 argo/db-main": {verdict.Ready, ""}, "argo-1 argo/web-main": {verdict.Ready, ""},
			"flux-1": {verdict.Ready, ""}, "flux-1 flux/db-main": {verdict.Ready, ""}, "flux-1 flux/web-main": {verdict.Ready, ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkVerdicts(t, observe.Observe(recordedInput(t, test.moment, test.tip, test.trees)), test.want)
		})
	}
}

// Since is the later of two times: the arrival of the content on the cluster, and the time when its object became ready.
func TestAnAssignmentIsReadySinceItsContentArrived(t *testing.T) {
	t.Parallel()
	since := func(in observe.FleetReports, cluster, key string) string {
		for _, c := range observe.Observe(in).Clusters {
			for _, a := range c.Assignments {
				if c.Name == cluster && a.Key == key {
					return a.Since.Format(time.TimeOnly)
				}
			}
		}
		return ""
	}
	// By the history of both objects, commit cfa3a changed the content.
	in := recordedInput(t, "5-ready-again", cfa3a, map[string]string{cfa3a: treeA, cd5cf: treeB, cd514: treeB})
	if got := since(in, "flux-1", "flux/web-main"); got != "20:07:58" {
		t.Errorf("Flux: %s", got)
	}
	if got := since(in, "argo-1", "argo/web-main"); got != "20:08:13" {
		t.Errorf("Argo CD: %s", got)
	}
	// The content is older than cfa3a: only the Application itself changed.
	in = recordedInput(t, "5-ready-again", cfa3a, map[string]string{cfa3a: treeA, cd514: treeA})
	before := since(in, "argo-1", "argo/web-main")
	if before >= "20:08:13" {
		t.Errorf("Argo CD: %s", before)
	}
	for i := range in.Folders {
		in.Folders[i].Changed = time.Date(2026, 11, 21, 20, 20, 0, 0, time.UTC)
	}
	if got := since(in, "argo-1", "argo/web-main"); got != "20:20:00" {
		t.Errorf("before the commit: %s, %s", got, before)
	}
}

func TestRecordedErrorsKeepTheMessageOfTheAgent(t *testing.T) {
	t.Parallel()
	const badKey = `ConfigMap "platform-config" is invalid: data[my key]`
	for name, test := range map[string]struct {
		file, host, branch, path, commit, before string
		want                                     expectation
	}{ // Argo CD was recorded during its last attempt.
		"a key that Kubernetes refuses, Flux":       {"flux-bad-configmap-key", "host", "bf", "", "79a939966298f68d17c96387d30e4fb833c9e294", "", expectation{verdict.Failed, badKey}},
		"a key that Kubernetes refuses, Argo CD":    {"argocd-bad-configmap-key", "host", "bk", "", "d65a4975dcd8262b6ebc0f64fcfa6d96804f40d1", "", expectation{verdict.Behind, "is tried again (attempt 6 of 6): one or more objects failed to apply, reason: " + badKey}},
		"a file without a manifest":                 {"argocd-config-type-json", "host", "aj", "", tip, "", expectation{verdict.Behind, "Object 'Kind' is missing"}},
		"a folder that was removed and added again": {"argocd-host-folder-gone", "argo", "dev", "", tip, c7a33, expectation{verdict.Behind, "argo: app path does not exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := folder.Location{URL: "http://127.0.0.1:18080/gitops2.git", Branch: test.branch, Path: test.path}
			report := observe.ReadCluster(at, test.host, "one", reconciler.Answer{Objects: readRecorded(t, "errors/"+test.file+".json")})
			in := observe.FleetReports{
				Time: time.Now(), Tip: test.commit, Types: map[string]string{"one": test.host}, Reports: map[string]observe.ClusterReport{"one": report},
				Folders: []observe.WrittenFolder{{Host: test.host, DeploymentTarget: "web-main", Tree: treeA}},
				Commits: map[string]gitops.ReportedCommit{test.commit: {ID: test.commit, Trees: map[string]map[string]string{test.host: {"web-main": treeA}}}},
			}
			if test.before != "" {
				in.Commits[test.before] = gitops.ReportedCommit{ID: test.before}
			}
			checkVerdicts(t, observe.Observe(in), map[string]expectation{"one": test.want, "one " + test.host + "/web-main": test.want})
		})
	}
	at := folder.Location{URL: "http://127.0.0.1:13000/flotadmin/gitops.git", Branch: "dev"}
	report := observe.ReadCluster(at, "argo", "one", reconciler.Answer{Objects: readRecorded(t, "errors/argocd-host-folder-gone.json")})
	result := observe.Observe(observe.FleetReports{
		Time: time.Now(), Tip: tip, Types: map[string]string{"one": "argo"}, Reports: map[string]observe.ClusterReport{"one": report},
		Commits: map[string]gitops.ReportedCommit{c7a33: {ID: c7a33}},
	})
	checkVerdicts(t, result, map[string]expectation{"one": {verdict.Failed, "argo: app path does not exist"}})
	if len(result.Clusters[0].Leftover) != 14 {
		t.Errorf("got %d leftover objects, want 14: %v", len(result.Clusters[0].Leftover), result.Clusters[0].Leftover)
	}
}

func TestReadyAgreesWithKstatusAndArgoCD(t *testing.T) {
	t.Parallel()
	for _, object := range append(readRecorded(t, "[1-5]*/*.json"), readRecorded(t, "errors/*.json")...) {
		got := reconciler.StatusOf(object).Verdict
		if object.GetKind() == "Application" {
			health, _, _ := unstructured.NestedString(object.Object, "status", "health", "status")
			sync, _, _ := unstructured.NestedString(object.Object, "status", "sync", "status")
			if healthy := health == "Healthy" && sync == "Synced"; (got == verdict.Ready) != healthy {
				t.Errorf("%s is %s, but sync %s and health %s in Argo CD", object.GetName(), got, sync, health)
			}
			continue
		}
		result, err := status.Compute(object)
		if err != nil {
			t.Fatal(err)
		}
		if current := result.Status == status.CurrentStatus; (got == verdict.Ready) != current {
			t.Errorf("%s %s is %s, but %s for kstatus", object.GetKind(), object.GetName(), got, result.Status)
		}
	}
}
