package observe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// readySync has the objects of Config Sync 1.22. Three controllers write the status: reconciler-manager writes Reconciling and Stalled,
// the reconciler writes source, rendering and sync, and the ResourceGroup controller writes the status of each object.
const readySync = `
apiVersion: configsync.gke.io/v1beta1
kind: RootSync
metadata: {name: web, namespace: config-management-system, generation: 1, labels: {flotilla.dev/owner: web}}
spec:
  sourceFormat: unstructured
  sourceType: git
  git: {repo: "https://git.example.com/web", branch: main, dir: deploy, auth: none}
status:
  observedGeneration: 1
  reconciler: root-reconciler-web
  lastSyncedCommit: ` + treeA + `
  source:
    gitStatus: {repo: "https://git.example.com/web", revision: HEAD, branch: main, dir: deploy}
    commit: ` + treeA + `
    lastUpdate: "2026-11-21T20:00:00Z"
    errorSummary: {}
  rendering:
    gitStatus: {repo: "https://git.example.com/web", revision: HEAD, branch: main, dir: deploy}
    commit: ` + treeA + `
    lastUpdate: "2026-11-21T20:00:00Z"
    message: Rendering skipped
    errorSummary: {}
  sync:
    gitStatus: {repo: "https://git.example.com/web", revision: HEAD, branch: main, dir: deploy}
    commit: ` + treeA + `
    lastUpdate: "2026-11-21T20:00:00Z"
    errorSummary: {}
  conditions:
  - {type: Reconciling, status: "False", lastUpdateTime: "2026-11-21T19:00:00Z", lastTransitionTime: "2026-11-21T19:00:00Z"}
  - {type: Stalled, status: "False", lastUpdateTime: "2026-11-21T19:00:00Z", lastTransitionTime: "2026-11-21T19:00:00Z"}
  - {type: Syncing, status: "False", reason: Sync, message: Sync Completed, commit: ` + treeA + `, lastUpdateTime: "2026-11-21T20:00:00Z", lastTransitionTime: "2026-11-21T20:00:00Z"}
---
apiVersion: kpt.dev/v1alpha1
kind: ResourceGroup
metadata: {name: web, namespace: config-management-system, generation: 2}
status:
  observedGeneration: 2
  conditions:
  - {type: Reconciling, status: "False", reason: FinishReconciling, message: finish reconciling, lastTransitionTime: "2026-11-21T20:01:00Z"}
  - {type: Stalled, status: "False", reason: FinishReconciling, message: finish reconciling, lastTransitionTime: "2026-11-21T20:01:00Z"}
  resourceStatuses:
  - {group: "", kind: Service, namespace: web, name: web, status: Current, sourceHash: aaaaaaa, strategy: Apply, actuation: Succeeded, reconcile: Succeeded}
  - {group: apps, kind: Deployment, namespace: web, name: web, status: Current, sourceHash: aaaaaaa, strategy: Apply, actuation: Succeeded, reconcile: Succeeded}
`

var readyRepoSync = strings.Replace(readySync, "kind: RootSync", "kind: RepoSync", 1)

func TestVerdictsOfConfigSync(t *testing.T) {
	t.Parallel()
	deployment := "{group: apps, kind: Deployment, namespace: web, name: web, status: Current,"
	newer := func(stage string) []string { // newer moves a stage to another commit
		return []string{stage + `:
    gitStatus: {repo: "https://git.example.com/web", revision: HEAD, branch: main, dir: deploy}
    commit: ` + treeA, stage + `:
    gitStatus: {repo: "https://git.example.com/web", revision: HEAD, branch: main, dir: deploy}
    commit: ` + treeB}
	}
	failing := func(stage string) []string {
		changed := newer(stage)
		changed[1] += `
    errors:
    - {code: "2010", errorMessage: "KNV2010: unable to apply", errorResources: [{name: web, namespace: web, gvk: {group: apps, version: v1, kind: Deployment}}]}
    - {code: "2010", errorMessage: "KNV2010: another"}`
		return changed
	}
	synced := `{type: Syncing, status: "False", reason: Sync, message: Sync Completed, commit: ` + treeA
	for name, test := range map[string]struct {
		replace []string
		want    verdict.Verdict
		reason  string
	}{
		"everything is ready":            {nil, verdict.Ready, ""},
		"a repeated sync":                {[]string{synced, `{type: Syncing, status: "True", reason: Sync, message: Syncing, commit: ` + treeA}, verdict.Ready, ""},
		"it has no status":               {[]string{synced, `{type: Other, status: "False"`}, verdict.Progressing, "has no status yet"},
		"a newer commit was read":        {newer("source"), verdict.Progressing, "is syncing " + treeB},
		"a newer commit is applied":      {slices.Concat(newer("source"), newer("rendering"), newer("sync")), verdict.Progressing, "is syncing " + treeB},
		"nothing was synced yet":         {[]string{"lastSyncedCommit: " + treeA, "other: x"}, verdict.Progressing, "is syncing " + treeA},
		"a commit cannot be parsed":      {failing("source"), verdict.Failed, "cannot be synced: 2 errors, the first is KNV2010: unable to apply"},
		"a commit cannot be applied":     {slices.Concat(newer("source"), newer("rendering"), failing("sync")), verdict.Failed, "KNV2010"},
		"a commit cannot be rendered":    {slices.Concat(newer("source"), failing("rendering")), verdict.Failed, "KNV2010"},
		"an older commit failed":         {slices.Concat(newer("source"), newer("rendering"), []string{"errorSummary: {}\n  conditions", "errors: [{errorMessage: old}]\n  conditions"}), verdict.Progressing, "is syncing " + treeB},
		"the source cannot be reached":   {[]string{"errorSummary: {}\n  rendering", "errors: [{code: \"2004\", errorMessage: no route to host}]\n  rendering"}, verdict.Ready, ""},
		"the spec was changed":           {[]string{"generation: 1,", "generation: 2,"}, verdict.Progressing, "was changed after its status was written"},
		"the folder was changed":         {[]string{"branch: main, dir: deploy, auth", "branch: main, dir: other, auth"}, verdict.Progressing, "was changed after its status was written"},
		"its reconciler is missing":      {[]string{`{type: Reconciling, status: "False", lastUpdateTime: "2026-11-21T19`, `{type: Reconciling, status: "True", reason: Deployment, message: "Deployment (config-management-system/root-reconciler-web) InProgress", lastUpdateTime: "2026-11-21T19`}, verdict.Progressing, "InProgress"},
		"it has stalled":                 {[]string{`{type: Stalled, status: "False", lastUpdateTime`, `{type: Stalled, status: "True", reason: Validation, message: "KNV1061: no auth", lastUpdateTime`}, verdict.Failed, "has stalled: KNV1061: no auth"},
		"it is being deleted":            {[]string{"generation: 1,", `generation: 1, deletionTimestamp: "2026-11-21T21:00:00Z",`}, verdict.Progressing, "is being deleted"},
		"it cannot be deleted":           {[]string{"generation: 1,", `generation: 1, deletionTimestamp: "2026-11-21T21:00:00Z",`, `{type: Stalled, status: "False", lastUpdateTime`, `{type: ReconcilerFinalizerFailure, status: "True", reason: DestroyFailure, message: "Failed to delete managed resource objects", lastUpdateTime`}, verdict.Failed, "cannot be deleted: Failed to delete"},
		"an object is not ready":         {[]string{deployment, strings.Replace(deployment, "Current", "InProgress", 1)}, verdict.Progressing, "has objects that are not ready yet: Deployment web/web"},
		"a missing object":               {[]string{deployment, strings.Replace(deployment, "Current", "NotFound", 1)}, verdict.Progressing, "Deployment web/web"},
		"an object has failed":           {[]string{deployment, strings.Replace(deployment, "Current", `Failed, conditions: [{type: Stalled, status: "True", message: progress deadline exceeded}]`, 1)}, verdict.Failed, "have failed: Deployment web/web (progress deadline exceeded)"},
		"an object without a status":     {[]string{deployment, strings.Replace(deployment, "Current", "Unknown", 1)}, verdict.Unknown, "do not say whether they are ready: Deployment web/web"},
		"the group was changed":          {[]string{"generation: 2}", "generation: 3}"}, verdict.Progressing, "ResourceGroup config-management-system/web was changed"},
		"the group is reconciling":       {[]string{`{type: Reconciling, status: "False", reason: Fin`, `{type: Reconciling, status: "True", reason: Fin`}, verdict.Progressing, "is not ready yet"},
		"the group has no status":        {[]string{`{type: Reconciling, status: "False", reason: Fin`, `{type: Other, status: "False", reason: Fin`}, verdict.Unknown, "does not say whether applied objects are ready"},
		"a group of another name":        {[]string{"metadata: {name: web, namespace: config-management-system, generation: 2", "metadata: {name: other, namespace: config-management-system, generation: 2"}, verdict.Unknown, "has no ResourceGroup"},
		"the image of the spec":          {[]string{"sourceType: git\n  git: {repo: \"https://git.example.com/web\", branch: main, dir: deploy, auth: none}", "sourceType: oci\n  oci: {image: \"registry.example.com/web:1\", dir: deploy}", "gitStatus: {repo: \"https://git.example.com/web\", revision: HEAD, branch: main, dir: deploy}", "ociStatus: {image: \"registry.example.com/web:1\", dir: deploy}"}, verdict.Ready, ""},
		"another image than in the spec": {[]string{"sourceType: git\n  git: {repo: \"https://git.example.com/web\", branch: main, dir: deploy, auth: none}", "sourceType: oci\n  oci: {image: \"registry.example.com/web:2\", dir: deploy}", "gitStatus: {repo: \"https://git.example.com/web\", revision: HEAD, branch: main, dir: deploy}", "ociStatus: {image: \"registry.example.com/web:1\", dir: deploy}"}, verdict.Progressing, "was changed after"},
	} {
		for _, kind := range []string{"RootSync", "RepoSync"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				text := readySync
				for i := 0; i < len(test.replace); i += 2 {
					if !strings.Contains(text, test.replace[i]) {
						t.Fatalf("%q is not in the text", test.replace[i])
					}
					text = strings.ReplaceAll(text, test.replace[i], test.replace[i+1])
				}
				got := judge(t, strings.Replace(text, "kind: RootSync", "kind: "+kind, 1))
				if got.Verdict != test.want || !strings.Contains(got.Message, test.reason) || test.want == verdict.Ready && got.Message != "" {
					t.Errorf("%s: %s, want %s: %s", got.Verdict, got.Message, test.want, test.reason)
				}
			})
		}
	}
}

// Flotilla or a person makes the RootSync of a cluster type's folder.
func TestARootSyncFollowsAFolder(t *testing.T) {
	t.Parallel()
	root := strings.NewReplacer("https://git.example.com/web", "https://git.example.com/platform/gitops", "branch: main", "branch: dev", "dir: deploy", "dir: clusters/web/drone",
		"name: web", "name: root", "flotilla.dev/owner: web", "a: b").
		Replace(readySync)
	location := folder.Location{URL: "git@git.example.com:platform/gitops.git", Branch: "dev", Path: "clusters/web"}
	for name, test := range map[string]struct {
		replace           []string
		follows, noFolder bool
		commit, attempted string
		want              verdict.Verdict
		failing           int
	}{
		"a synced commit":          {nil, true, false, treeA, "", verdict.Ready, 0},
		"the branch as a revision": {[]string{"branch: dev, dir: clusters/web/drone, auth", "revision: dev, dir: clusters/web/drone, auth", "revision: HEAD, branch: dev", "revision: dev, branch: main"}, true, false, treeA, "", verdict.Ready, 0},
		"another folder":           {[]string{"branch: dev, dir: clusters/web/drone, auth", "branch: dev, dir: clusters/web/other, auth"}, false, false, "", "", "", 0},
		"another branch":           {[]string{"branch: dev, dir: clusters/web/drone, auth", "branch: prod, dir: clusters/web/drone, auth"}, false, false, "", "", "", 0},
		"the default branch":       {[]string{"branch: dev, dir: clusters/web/drone, auth", "dir: clusters/web/drone, auth"}, false, false, "", "", "", 0},
		"an image":                 {[]string{"sourceType: git", "sourceType: oci"}, false, false, "", "", "", 0},
		"a newer commit":           {[]string{"dir: clusters/web/drone}\n    commit: " + treeA, "dir: clusters/web/drone}\n    commit: " + treeB}, true, false, treeA, treeB, verdict.Progressing, 0},
		"a newer commit with errors": {[]string{"dir: clusters/web/drone}\n    commit: " + treeA, "dir: clusters/web/drone}\n    commit: " + treeB,
			"errorSummary: {}\n  conditions", "errors: [{code: \"2010\", errorMessage: KNV2010, errorResources: [{name: web, namespace: web, gvk: {group: apps, version: v1, kind: Deployment}}]}]\n  conditions"}, true, false, treeA, treeB, verdict.Failed, 1},
		"a missing folder": {[]string{"lastSyncedCommit: " + treeA, "other: x", "dir: clusters/web/drone}\n    commit: " + treeA, "dir: clusters/web/drone}\n    commit: " + `""`,
			"errorSummary: {}\n  rendering", `errors: [{code: "2004", errorMessage: 'KNV2004: error in the git-sync container: failed to evaluate the config directory "/repo/source/1/clusters/web/drone": lstat: no such file or directory'}]` + "\n  rendering"}, true, true, "", "", verdict.Failed, 0},
		"an object has failed": {[]string{"kind: Deployment, namespace: web, name: root, status: Current", "kind: Deployment, namespace: web, name: root, status: Failed"}, true, false, treeA, "", verdict.Failed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := root
			for i := 0; i < len(test.replace); i += 2 {
				if !strings.Contains(text, test.replace[i]) {
					t.Fatalf("%q is not in the text", test.replace[i])
				}
				text = strings.ReplaceAll(text, test.replace[i], test.replace[i+1])
			}
			report := observe.ReadCluster(location, "drone", "drone-1", reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(text))})
			got, follows := report.Applied["drone"]
			if follows != test.follows || got.Commit != test.commit || got.Attempted != test.attempted || got.Verdict != test.want ||
				got.NoFolder != test.noFolder ||
				len(got.Failing) != test.failing {
				t.Errorf("%v %+v", follows, got)
			}
		})
	}
}
