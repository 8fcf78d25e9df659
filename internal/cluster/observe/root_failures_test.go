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

// The root of a folder reports one status for all assignments in it. Evidence marks a failure as "of the root" for each assignment that
// the message does not name.
func TestARootFailureBelongsToNamedAssignmentsOnly(t *testing.T) {
	t.Parallel()
	const (
		fine = `type: Ready, status: "True", reason: ReconciliationSucceeded, message: Applied revision`
		bad  = `type: Ready, status: "False", reason: ReconciliationFailed, message: "`
	)
	flux := func(message string) string {
		root := strings.NewReplacer(
			"path: ./web",
			"path: ./drone",
			"name: web,",
			"name: root,",
			"lastAppliedRevision: v1@sha1:effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b",
			"lastAttemptedRevision: dev@sha1:"+tip,
		).Replace(readyKustomization)
		return replaceOnce(t, root, fine, bad+message+`"`)
	}
	argo := func(resource string) string {
		root := strings.NewReplacer("path: web", "path: drone", "targetRevision: v1", "targetRevision: dev", "name: web,", "name: root,",
			"effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b", older, "phase: Succeeded", "phase: Failed").Replace(readyApplication)
		return replaceOnce(
			t,
			root,
			"message: successfully synced",
			"message: one or more objects failed to apply, syncResult: {revision: \""+tip+"\", resources: ["+resource+"]}",
		)
	}
	read := func(documents string) observe.ClusterReport {
		return observe.ReadCluster(
			folder.Location{Branch: "dev"},
			"drone",
			"drone-1",
			reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(documents))},
		)
	}
	statuses := func(reports ...observe.ExternalReport) observe.ClusterReport {
		return observe.ReadStatuses("drone", "drone-1", map[string][]observe.ExternalReport{"": reports})
	}
	for name, test := range map[string]struct {
		report observe.ClusterReport
		ofRoot map[string]bool
	}{
		"a commit status": {statuses(observe.ExternalReport{Commit: tip, Verdict: verdict.Failed, Message: "health check failed"}),
			map[string]bool{"drone/api": true, "drone/web": true}},
		"a commit status of another commit": {statuses(observe.ExternalReport{Commit: tip, Verdict: verdict.Failed}, observe.ExternalReport{Commit: older, Verdict: verdict.Ready}),
			map[string]bool{"drone/api": true, "drone/web": true}},
		"a report of a cluster":        {observe.ReadExternal(observe.ExternalReport{Commit: tip, Verdict: verdict.Progressing}), map[string]bool{"drone/api": true, "drone/web": true}},
		"a failed report of a cluster": {observe.ReadExternal(observe.ExternalReport{Commit: tip, Verdict: verdict.Failed}), map[string]bool{"drone/api": true, "drone/web": true}},
		"a report of an assignment": {observe.ReadExternal(observe.ExternalReport{Commit: tip, Verdict: verdict.Progressing}, observe.ExternalReport{Assignment: "drone/web", Verdict: verdict.Failed, Message: "errors"}),
			map[string]bool{"drone/api": true, "drone/web": false}},
		"Flux names nothing": {read(flux("kustomize build failed")), map[string]bool{"drone/api": true, "drone/web": true}},
		"Flux names an object of a folder": {read(flux("HelmRelease/flux-system/web dry-run failed (Invalid): no such field")),
			map[string]bool{"drone/api": true, "drone/web": false}},
		"Flux names an object of a namespace": {read(flux("ConfigMap/api/platform-config dry-run failed: data is invalid")),
			map[string]bool{"drone/api": false, "drone/web": true}},
		"Flux names a namespace": {read(flux("Namespace/api dry-run failed: labels are invalid")), map[string]bool{"drone/api": false, "drone/web": true}},
		"Argo CD names an object": {read(argo(`{kind: ConfigMap, namespace: web, name: settings, status: SyncFailed}, {kind: ConfigMap, namespace: api, name: settings, status: Synced}`)),
			map[string]bool{"drone/api": true, "drone/web": false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := observe.FleetReports{
				Time: time.Unix(
					1e9,
					0,
				), Tip: tip, Types: map[string]string{"drone-1": "drone"}, Reports: map[string]observe.ClusterReport{"drone-1": test.report},
				Commits: map[string]gitops.ReportedCommit{
					tip:   {ID: tip, Trees: map[string]map[string]string{"drone": {"api": treeA, "web": treeA}}},
					older: {ID: older, Trees: map[string]map[string]string{"drone": {"api": treeB, "web": treeB}}},
				},
			}
			for _, target := range []string{"api", "web"} {
				in.Folders = append(in.Folders, observe.WrittenFolder{Host: "drone", DeploymentTarget: target, Tree: treeA, Namespace: target,
					Objects: []reconciler.ObjectName{{Kind: "HelmRelease", Namespace: "flux-system", Name: target}}})
			}
			text := observe.Observe(in).Evidence().Marshal()
			evidence, err := observe.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range test.ofRoot {
				got := evidence.Assignment("drone-1", key)
				if got.Verdict == verdict.Ready || got.Verdict == verdict.Behind || got.OfRoot != want {
					t.Errorf("%s: OfRoot = %v, want %v: %s", key, got.OfRoot, want, text)
				}
			}
		})
	}
}
