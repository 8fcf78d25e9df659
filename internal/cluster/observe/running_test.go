package observe_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// A commit that is being applied, or has only reached the source, is not running.
func TestRecordedObjectsShowTheRunningVersion(t *testing.T) {
	t.Parallel()
	const before, after, later = "effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b", "70bd5d43ff21c6e481072379cf5574f77cbe4509", "bb0bc94e5d4fc6fe10b185cd9ccefa6f5cd7b21d"
	onMain := func(revision string) reconciler.Running {
		return reconciler.Running{Version: "main", Revision: revision}
	}
	db := onMain(after)
	db.Images = "example.com/db:1"
	for _, test := range []struct {
		moment, tip string
		want        map[string]reconciler.Running
	}{
		{"1-ready", c07fb, map[string]reconciler.Running{
			"argo/db-main": onMain(before), "argo/web-main": onMain(before), "flux/db-main": onMain(before), "flux/web-main": onMain(before),
		}},
		{"2-first-deploy-not-ready", cd5cf, map[string]reconciler.Running{"argo/db-main": db, "argo/web-main": onMain(after)}},
		{"3-new-commit-waits", cd5cf, map[string]reconciler.Running{"argo/db-main": db, "argo/web-main": onMain(after)}},
		{"4-argocd-waits-for-a-wave", cd514, map[string]reconciler.Running{"argo/db-main": db}},
		{"5-ready-again", cfa3a, map[string]reconciler.Running{
			"argo/db-main": onMain(later), "argo/web-main": onMain(later), "flux/db-main": onMain(later), "flux/web-main": onMain(later),
		}},
	} {
		result := observe.Observe(recordedInput(t, test.moment, test.tip, map[string]string{test.tip: treeA}))
		for _, cluster := range result.Clusters {
			for _, a := range cluster.Assignments {
				if a.Running != test.want[a.Key] {
					t.Errorf("%s: %s runs %+v, want %+v", test.moment, a.Key, a.Running, test.want[a.Key])
				}
			}
		}
		runs := result.AssignmentRuns()
		for i, run := range runs {
			cluster, _, _ := strings.Cut(run.Key(), "/")
			if run.Running != test.want[run.Key()] || strings.Join(run.Clusters, " ") != cluster+"-1" || !run.Everywhere ||
				i > 0 && runs[i-1].Key() >= run.Key() {
				t.Errorf("%s: %+v", test.moment, run)
			}
		}
		if len(runs) != len(test.want) {
			t.Errorf("%s has %d runs, want %d", test.moment, len(runs), len(test.want))
		}
	}
}

func TestTheRunningVersionIsTheAppliedVersion(t *testing.T) {
	t.Parallel()
	const revision = "effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b"
	const newer = "bb0bc94e5d4fc6fe10b185cd9ccefa6f5cd7b21d"
	const digest = "sha256:0cc9a8446c95009ef382f5eade883a67c257f77d50f84e78ecef2aac9428d1e5"
	replace := func(text, old, by string) string { return replaceOnce(t, text, old, by) }
	firstOf := func(documents string) string {
		first, _, _ := strings.Cut(documents, "\n---\n")
		return first
	}
	release := func(history string) string {
		return replace(readyRelease, `history: [{chartVersion: 1.2.3, lastDeployed: "2026-11-21T21:00:00Z"}]`, "history: ["+history+"]")
	}
	const (
		first  = `{version: 1, status: deployed, chartName: web, chartVersion: 1.2.3, appVersion: v7}`
		failed = `{version: 2, status: failed, chartName: web, chartVersion: 1.3.0, appVersion: v8}`
	)
	outOfSync := replace(
		replace(readyApplication, "status: Synced", "status: OutOfSync"),
		"revision: "+revision+"\n    compared",
		"revision: "+newer+"\n    compared",
	)
	outOfSync = replace(
		outOfSync,
		"history: [{revision: "+revision+", ",
		`history: [{revision: "1111", deployedAt: "2026-11-20T00:00:00Z"}, {revision: `+revision+", source: {targetRevision: v1}, ",
	)
	withBundleDeployment := readyHelmOp + strings.NewReplacer("web-web", "web").Replace(readyRepo[strings.LastIndex(readyRepo, "\n---\n"):])
	for name, test := range map[string]struct {
		documents string
		want      reconciler.Running
	}{
		"a Kustomization of a tag":                    {readyKustomization, reconciler.Running{Version: "v1", Revision: revision}},
		"a Kustomization that tries another tag":      {readyKustomization + "\n  lastAttemptedRevision: v2@sha1:" + newer, reconciler.Running{Version: "v1", Revision: revision}},
		"a Kustomization of a commit":                 {replace(readyKustomization, "v1@sha1:", "sha1:"), reconciler.Running{Revision: revision}},
		"a Kustomization of an older Flux":            {replace(readyKustomization, "v1@sha1:", "feature/a/"), reconciler.Running{Version: "feature/a", Revision: revision}},
		"a Kustomization of an image":                 {replace(readyKustomization, "v1@sha1:"+revision, "1.2.3@"+digest), reconciler.Running{Version: "1.2.3", Revision: digest}},
		"a Kustomization of a bucket":                 {replace(readyKustomization, "v1@sha1:"+revision, digest), reconciler.Running{Revision: digest}},
		"a Kustomization without an applied revision": {replace(readyKustomization, "lastAppliedRevision", "lastAttemptedRevision"), reconciler.Running{}},

		"a HelmRelease":                          {release(first), reconciler.Running{Version: "1.2.3", Chart: "web", AppVersion: "v7"}},
		"a HelmRelease whose upgrade has failed": {release(failed + ", " + first), reconciler.Running{Version: "1.2.3", Chart: "web", AppVersion: "v7"}},
		"a HelmRelease that was rolled back": {release(strings.Replace(first, "version: 1", "version: 3", 1) + ", " + failed + ", " + strings.Replace(first, "deployed", "superseded", 1)),
			reconciler.Running{Version: "1.2.3", Chart: "web", AppVersion: "v7"}},
		"a HelmRelease whose first installation has failed": {release(failed), reconciler.Running{}},
		"a HelmRelease that was uninstalled":                {release(strings.Replace(first, "deployed", "uninstalled", 1)), reconciler.Running{}},
		"a HelmRelease of an image": {release(`{status: deployed, chartName: web, chartVersion: 1.2.3+0cc9a8446c95, appVersion: v7, ociDigest: "` + digest + `"}`),
			reconciler.Running{Version: "1.2.3", Revision: digest, Chart: "web", AppVersion: "v7"}},
		"a HelmRelease of a chart in Git": {replace(release(`{status: deployed, chartName: web, chartVersion: 1.2.3+effd5ef2f5cb}`), "kind: HelmRepository", "kind: GitRepository"),
			reconciler.Running{Version: "1.2.3", Revision: "effd5ef2f5cb", Chart: "web"}},
		"a HelmRelease of a chart with metadata of its own": {release(`{status: deployed, chartName: web, chartVersion: 1.2.3+k3s1}`), reconciler.Running{Version: "1.2.3+k3s1", Chart: "web"}},

		"an Application":             {readyApplication, reconciler.Running{Version: "v1", Revision: revision}},
		"an Application out of sync": {outOfSync, reconciler.Running{Version: "v1", Revision: revision}},
		"an Application whose sync has failed": {replace(outOfSync, "phase: Succeeded", "phase: Failed, syncResult: {revision: "+newer+"}"),
			reconciler.Running{Version: "v1", Revision: revision}},
		"an Application that was never synced": {replace(replace(readyApplication, "status: Synced", "status: OutOfSync"), "history:", "other:"), reconciler.Running{}},
		"an Application of a range":            {replace(readyApplication, "targetRevision: v1, directory", `targetRevision: "v1.*", directory`), reconciler.Running{Revision: revision}},
		"an Application of a chart": {replace(replace(readyApplication, "path: web, targetRevision: v1, directory: {jsonnet: {}}", `chart: web, targetRevision: "1.*"`), "revision: "+revision+"\n    compared", "revision: 1.2.3\n    compared"),
			reconciler.Running{Version: "1.2.3", Chart: "web"}},
		"an Application of an image": {replace(replace(readyApplication, "targetRevision: v1, directory", `targetRevision: 1.2.3, directory`), "revision: "+revision+"\n    compared", "revision: \""+digest+"\"\n    compared"),
			reconciler.Running{Version: "1.2.3", Revision: digest}},
		"an Application of several sources": {severalSources(t), reconciler.Running{Version: "v1, 1.2.3", Revision: revision, Chart: "web"}},
		"an Application with images": {readyApplication + `
  summary: {images: ["b:2", "a:1", "b:2"]}`, reconciler.Running{Version: "v1", Revision: revision, Images: "a:1 b:2"}},

		"a GitRepo":             {readyRepo, reconciler.Running{Version: "main", Revision: revision}},
		"a GitRepo of a tag":    {replace(readyRepo, "branch: main", "revision: v1"), reconciler.Running{Version: "v1", Revision: revision}},
		"a GitRepo of a commit": {replace(readyRepo, "branch: main", "revision: "+revision), reconciler.Running{Revision: revision}},
		"a GitRepo whose Bundle is of another commit": {replace(readyRepo, "commit: "+revision+"\n  summary", "commit: "+newer+"\n  summary"), reconciler.Running{}},
		"a GitRepo that is not deployed":              {replace(readyRepo, "appliedDeploymentID: s-1:o-1", "appliedDeploymentID: s-0:o-1"), reconciler.Running{}},
		"a GitRepo whose Bundles were not read":       {firstOf(readyRepo), reconciler.Running{}},
		"a HelmOp":                                    {withBundleDeployment, reconciler.Running{Version: "1.2.3", Chart: "web"}},
		"a HelmOp that is not deployed":               {replace(withBundleDeployment, "appliedDeploymentID: s-1:o-1", "appliedDeploymentID: s-0:o-1"), reconciler.Running{}},
		"a HelmOp of an image": {strings.ReplaceAll(withBundleDeployment, `chart: web, repo: "https://charts.example.com"`, `repo: "oci://user:secret@charts.example.com/web"`),
			reconciler.Running{Version: "1.2.3", Chart: "web"}},
		"a HelmOp whose Bundles were not read": {firstOf(readyHelmOp), reconciler.Running{}},

		"a RootSync":          {strings.TrimSpace(readySync), reconciler.Running{Version: "main", Revision: treeA}},
		"a RootSync of a tag": {strings.ReplaceAll(strings.TrimSpace(readySync), "revision: HEAD", "revision: v1"), reconciler.Running{Version: "v1", Revision: treeA}},
		"a RootSync that is syncing another commit": {strings.TrimSpace(strings.ReplaceAll(replace(readySync, "lastSyncedCommit: "+treeA, "lastSyncedCommit: "+treeB), "branch: main", "branch: other")),
			reconciler.Running{Revision: treeB}},
		"a RootSync of an image": {strings.TrimSpace(strings.ReplaceAll(readySync, `gitStatus: {repo: "https://git.example.com/web", revision: HEAD, branch: main, dir: deploy}`, `ociStatus: {image: "example.com:5000/web:1.2.3", dir: deploy}`)),
			reconciler.Running{Version: "1.2.3", Revision: treeA}},
		"a RepoSync": {strings.TrimSpace(readyRepoSync), reconciler.Running{Version: "main", Revision: treeA}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := judge(t, test.documents).Running; got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// The status of a cluster can neither fill the memory nor send control codes to a terminal.
func TestRunningVersionsAreBounded(t *testing.T) {
	t.Parallel()
	var images, sources, revisions []string
	for i := range 1000 {
		images = append(images, fmt.Sprintf("%q", fmt.Sprintf("image-%04d", i)))
		sources, revisions = append(sources, fmt.Sprintf("{targetRevision: v%d}", i)), append(revisions, fmt.Sprintf("\"%040d\"", i))
	}
	many := replaceOnce(t, readyApplication, "status: Synced\n", "status: Synced\n    revisions: ["+strings.Join(revisions, ", ")+"]\n")
	many = replaceOnce(t, many, "    comparedTo:\n", "    comparedTo:\n      sources: ["+strings.Join(sources, ", ")+"]\n")
	got := judge(t, many+"\n  summary: {images: ["+strings.Join(images, ", ")+"]}").Running
	for _, text := range []string{got.Version, got.Revision, got.Images} {
		if len(text) < 300 || len(text) > 2048 {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	}
	const revision = "v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b"
	hostile := judge(
		t,
		replaceOnce(t, readyKustomization, revision, `"v1\e[31m\n`+strings.Repeat("ü", 5000)+`@`+strings.Repeat("a", 9000)+`"`),
	).Running
	if len(hostile.Version) > 310 || len(hostile.Revision) > 310 || strings.ContainsAny(hostile.Version, "\x1b\n") ||
		!utf8.ValidString(hostile.Version) {
		t.Errorf("%q", hostile.Version)
	}
}

func TestRunsOfAnAssignmentAreSortedByClusters(t *testing.T) {
	t.Parallel()
	at := folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}
	in := observe.FleetReports{
		Tip: tip, Types: map[string]string{}, Reports: map[string]observe.ClusterReport{}, Commits: map[string]gitops.ReportedCommit{},
		Folders: []observe.WrittenFolder{
			{
				Host:             "drone",
				DeploymentTarget: "web",
				Wanted:           "v3",
				Objects:          []reconciler.ObjectName{{Kind: "Kustomization", Namespace: "flux-system", Name: "web"}},
			},
		},
	}
	for i, version := range []string{"v2", "v1", "v2", "", "v3"} {
		name := fmt.Sprint("drone-", i)
		in.Types[name] = "drone"
		if version != "" {
			in.Reports[name] = observe.ReadCluster(at, "drone", name, reconciler.Answer{
				Objects: parseObjects(t, strings.TrimSpace(replaceOnce(t, readyKustomization, "v1@sha1:", version+"@sha1:"))),
			})
		}
	}
	var got []string
	for _, run := range observe.Observe(in).AssignmentRuns() {
		got = append(got, fmt.Sprintln(run.Key(), run.Wanted, run.Version, run.Clusters, run.Everywhere))
	}
	want := []string{"drone/web v3 v2 [drone-0 drone-2] false\n", "drone/web v3 v1 [drone-1] false\n", "drone/web v3 v3 [drone-4] false\n"}
	if strings.Join(got, "") != strings.Join(want, "") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunsOfATargetListHostsAndSingleClusters(t *testing.T) {
	t.Parallel()
	in := referenceFleet(t, 8)
	all := observe.Observe(in).TargetRuns()
	if len(all) != 80 {
		t.Fatalf("got %d runs, want 80", len(all))
	}
	for i, want := range []observe.TargetRun{
		{DeploymentTarget: "workload-07-main", Clusters: 34, Hosts: []string{"type-002", "type-003", "type-006", "type-007"},
			Names: []string{"type-001-1", "type-001-2", "type-001-3", "type-001-4", "type-001-5", "type-005-1", "type-005-2", "type-005-3", "type-005-4", "type-005-5"}},
		{DeploymentTarget: "workload-07-main", Clusters: 14, Hosts: []string{"type-000", "type-004"}, Names: []string{"type-001-0", "type-005-0"}},
	} {
		want.Running = reconciler.Running{Version: fmt.Sprintf("v1.7.%d", i), Revision: "00075ef2f5cba97c21d2f82ee9ef63f6bb77fb5b"}
		if got := all[14+i]; !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

func TestEvidenceHasTheRunningVersions(t *testing.T) {
	t.Parallel()
	types := acceptancetest.Count(50, 500)
	in := referenceFleet(t, types)
	// One cluster has no report, and some folders have no objects.
	delete(in.Reports, "type-000-0")
	for i := range in.Folders {
		if f := &in.Folders[i]; f.Host == "type-002" && f.DeploymentTarget == "workload-07-main" || f.Host == "type-003" {
			f.Objects = nil
		}
	}
	result := observe.Observe(in)
	text := result.Evidence().Marshal()
	without := result.Evidence()
	without.Running = nil
	for name, cluster := range without.Clusters {
		cluster.Running = nil
		without.Clusters[name] = cluster
	}
	bytes := len(text) - len(without.Marshal())
	t.Logf("the versions on %d clusters take %d of %d bytes of evidence", len(in.Types), bytes, len(text))
	if len(text) > types*(4<<20)/500 {
		t.Errorf("the evidence has %d bytes", len(text))
	}
	read, err := observe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, cluster := range result.Clusters {
		for _, a := range cluster.Assignments {
			if got := read.RunningOn(cluster.Name, a.Key); got != a.Running {
				t.Fatalf("%s on %s runs %+v, want %+v", a.Key, cluster.Name, got, a.Running)
			} else if got.Version != "" {
				known++
			}
		}
	}
	if want := 40*(len(in.Types)-1-6) - 6; known != want {
		t.Errorf("got %d known versions, want %d", known, want)
	}
	if string(read.Marshal()) != string(text) {
		t.Error("evidence changes after Parse and Marshal")
	}
}
