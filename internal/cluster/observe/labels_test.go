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

// Whoever may make an object on a cluster may give it the labels of another owner's assignment. The records say which
// objects reconcile that, so it gets neither ready nor failed by them; the cluster says that it still has them.
func TestLabelsOfAnotherAssignmentDecideNothingOfIt(t *testing.T) {
	t.Parallel()
	const labels = "generation: 2, labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone, flotilla.dev/deployment-target: web}"
	labelled := func(text string) string { return strings.Replace(text, "generation: 2", labels, 1) }
	failing := func(text string) string {
		return replaced(
			t,
			text,
			`status: "True", reason: ReconciliationSucceeded, message: Applied revision`,
			`status: "False", reason: BuildFailed, message: no such file`,
		)
	}
	elsewhere := func(text string) string { // an object of the same name, in a namespace of a team's own
		return strings.NewReplacer("name: web, namespace: flux-system", "name: web, namespace: team").Replace(text)
	}
	besides := func(text string) string { // another object beside it
		return strings.NewReplacer("name: web, namespace: flux-system", "name: intruder, namespace: flux-system").Replace(text)
	}
	root := fluxRoot("drone", "web", older, "2026-11-21T18:00:00Z")
	own := labelled(readyKustomization)
	for name, test := range map[string]struct {
		own, foreign string // "" is not there
		want         verdict.Verdict
	}{
		"it is ready, and theirs fails":                    {own, failing(labelled(besides(readyKustomization))), verdict.Ready},
		"it is ready, and theirs of its name fails":        {own, failing(labelled(elsewhere(readyKustomization))), verdict.Ready},
		"it has failed, and theirs is ready":               {failing(own), labelled(besides(readyKustomization)), verdict.Failed},
		"it has failed, and theirs of its name is ready":   {failing(own), labelled(elsewhere(readyKustomization)), verdict.Failed},
		"it is not there, and theirs is ready":             {"", labelled(besides(readyKustomization)), verdict.Progressing},
		"it is not there, and theirs of its name is ready": {"", labelled(elsewhere(readyKustomization)), verdict.Progressing},
		"it is not there, and theirs fails":                {"", failing(labelled(elsewhere(readyKustomization))), verdict.Progressing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents := root + "\n---" + readySource + "\n---" + test.foreign
			if test.own != "" {
				documents += "\n---" + test.own
			}
			listed := reconciler.Answer{Objects: objectsOf(t, documents)}
			result := observe.Observe(observe.FleetReports{
				Time: time.Unix(2e9, 0), Tip: tip, Types: map[string]string{"drone-1": "drone"},
				Reports:     map[string]observe.ClusterReport{"drone-1": observe.ReadCluster(folder.Location{Branch: "dev"}, "drone", "drone-1", listed)},
				OwnerLabels: []string{"dev"}, HostLabels: map[string]string{"drone": "drone"},
				Commits: map[string]gitops.ReportedCommit{older: {ID: older, Trees: map[string]map[string]string{"drone": {"web": treeA}}}},
				Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA,
					Objects: []reconciler.ObjectName{{Kind: "Kustomization", Namespace: "flux-system", Name: "web"}}}},
			})
			cluster := result.Clusters[0]
			if got := cluster.Assignments[0]; got.Verdict != test.want {
				t.Errorf("it is %s: %s", got.Verdict, got.Message)
			}
			if len(cluster.Leftover) != 1 || cluster.Verdict == verdict.Ready {
				t.Errorf("the cluster is %s, and still has %v", cluster.Verdict, cluster.Leftover)
			}
		})
	}
}

// The same of the other agents. Objects of Argo CD and of Rancher Fleet have labels, too, and on a hub Applications belong
// to an assignment by the ApplicationSet that controls them.
func TestLabelsOfAnotherAssignmentDecideNothingOfOtherAgents(t *testing.T) {
	t.Parallel()
	const labels = "labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone, flotilla.dev/deployment-target: web}"
	at := folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}
	inFolder := `repoURL: "https://git.example.com/gitops", path: drone, targetRevision: dev`
	ofWeb := `repoURL: "https://git.example.com/web", path: ".", targetRevision: v1`
	failingArgo := func(text string) string {
		return replaced(t, text, "phase: Succeeded", "phase: Failed, message: no such field")
	}
	repo := func(name, owner string) string { // a GitRepo with its Bundle and BundleDeployment
		return strings.NewReplacer("{name: web,", "{name: "+name+", "+owner, "name: web-web", "name: "+name+"-web", "repo-name: web", "repo-name: "+name).
			Replace(readyRepo)
	}
	bySet := func(set string) string {
		return labels + ", ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: " + set + ", uid: x, controller: true}]"
	}
	for name, of := range map[string]struct {
		read    func(reconciler.Answer) observe.ClusterReport
		root    string
		own     string
		foreign string
		failing func(string) string
		object  reconciler.ObjectName
	}{
		"Argo CD": {
			read: func(listed reconciler.Answer) observe.ClusterReport {
				return observe.ReadCluster(at, "drone", "drone-1", listed)
			},
			root:    hubApplication("root", "labels: {a: b}", "namespace: argocd", inFolder, older),
			own:     hubApplication("web", labels, "namespace: web", ofWeb, older),
			foreign: hubApplication("intruder", labels, "namespace: web", ofWeb, older),
			failing: failingArgo, object: reconciler.ObjectName{Kind: "Application", Namespace: "argocd", Name: "web"},
		},
		"Rancher Fleet": {
			read: func(listed reconciler.Answer) observe.ClusterReport {
				return observe.ReadCluster(at, "drone", "drone-1", listed)
			},
			root: strings.NewReplacer("effd5ef2f5cba97c21d2f82ee9ef63f6bb77fb5b", `"`+older+`"`, "git.example.com/web", "git.example.com/gitops", "branch: main, paths: [web]", "branch: dev, paths: [drone]").
				Replace(repo("root", "")),
			own: repo("web", labels+", "), foreign: repo("intruder", labels+", "),
			failing: func(text string) string {
				return replaced(t, text, `{type: Accepted, status: "True"}`, `{type: Accepted, status: "False", message: no such branch}`)
			},
			object: reconciler.ObjectName{Kind: "GitRepo", Namespace: "fleet-local", Name: "web"},
		},
		"Argo CD on a hub": {
			read: func(listed reconciler.Answer) observe.ClusterReport {
				return observe.ReadHub(at, map[string]string{"drone-1": "drone"}, listed)["drone-1"]
			},
			root: hubApplication("root", "labels: {a: b}", "name: drone-1", inFolder, older) + "\n---" + hubSet + "\n---" +
				strings.Replace(hubSet, "name: web,", "name: intruder,", 1),
			own:     hubApplication("web-drone-1", bySet("web"), "name: drone-1", ofWeb, older),
			foreign: hubApplication("intruder", bySet("intruder"), "name: drone-1", ofWeb, older),
			failing: failingArgo, object: reconciler.ObjectName{Kind: "ApplicationSet", Namespace: "argocd", Name: "web"},
		},
		"Argo CD on a hub, by labels alone": {
			read: func(listed reconciler.Answer) observe.ClusterReport {
				return observe.ReadHub(at, map[string]string{"drone-1": "drone"}, listed)["drone-1"]
			},
			root:    hubApplication("root", "labels: {a: b}", "name: drone-1", inFolder, older) + "\n---" + hubSet,
			own:     hubApplication("web-drone-1", bySet("web"), "name: drone-1", ofWeb, older),
			foreign: hubApplication("intruder", labels, "name: drone-1", ofWeb, older),
			failing: failingArgo, object: reconciler.ObjectName{Kind: "ApplicationSet", Namespace: "argocd", Name: "web"},
		},
	} {
		for what, test := range map[string]struct {
			own, foreign string // "" is not there
			want         verdict.Verdict
		}{
			"it is ready, and theirs fails":        {of.own, of.failing(of.foreign), verdict.Ready},
			"it has failed, and theirs is ready":   {of.failing(of.own), of.foreign, verdict.Failed},
			"it is not there, and theirs is ready": {"", of.foreign, verdict.Progressing},
			"it is not there, and theirs fails":    {"", of.failing(of.foreign), verdict.Progressing},
		} {
			t.Run(name+": "+what, func(t *testing.T) {
				t.Parallel()
				documents := strings.TrimSpace(of.root) + "\n---" + test.foreign
				if test.own != "" {
					documents += "\n---" + test.own
				}
				result := observe.Observe(observe.FleetReports{
					Time: time.Unix(2e9, 0), Tip: tip, Types: map[string]string{"drone-1": "drone"},
					Reports:     map[string]observe.ClusterReport{"drone-1": of.read(reconciler.Answer{Objects: objectsOf(t, documents)})},
					OwnerLabels: []string{"dev"}, HostLabels: map[string]string{"drone": "drone"},
					Commits: map[string]gitops.ReportedCommit{older: {ID: older, Trees: map[string]map[string]string{"drone": {"web": treeA}}}},
					Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA, Objects: []reconciler.ObjectName{of.object}}},
				})
				cluster := result.Clusters[0]
				if got := cluster.Assignments[0]; got.Verdict != test.want {
					t.Errorf("it is %s: %s", got.Verdict, got.Message)
				}
				if len(cluster.Leftover) != 1 || cluster.Verdict == verdict.Ready {
					t.Errorf("the cluster is %s, and still has %v", cluster.Verdict, cluster.Leftover)
				}
			})
		}
	}
}
