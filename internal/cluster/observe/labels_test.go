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

// Anyone with the right to create objects on a cluster can copy the labels of another owner's assignment. The records name the objects
// of an assignment, so foreign objects change no verdict of an assignment. The cluster reports them as leftover.
func TestForeignLabelsDoNotChangeVerdicts(t *testing.T) {
	t.Parallel()
	const labels = "generation: 2, labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone, flotilla.dev/deployment-target: web}"
	labelled := func(text string) string { return strings.Replace(text, "generation: 2", labels, 1) }
	failing := func(text string) string {
		return replaceOnce(
			t,
			text,
			`status: "True", reason: ReconciliationSucceeded, message: Applied revision`,
			`status: "False", reason: BuildFailed, message: no such file`,
		)
	}
	elsewhere := func(text string) string { // moves the object to the namespace of a team
		return strings.NewReplacer("name: web, namespace: flux-system", "name: web, namespace: team").Replace(text)
	}
	renamed := func(text string) string { // gives the object another name
		return strings.NewReplacer("name: web, namespace: flux-system", "name: intruder, namespace: flux-system").Replace(text)
	}
	root := fluxRoot("drone", "web", older, "2026-11-21T18:00:00Z")
	own := labelled(readyKustomization)
	for name, test := range map[string]struct {
		own, foreign string // "" for none
		want         verdict.Verdict
	}{
		"own ready, foreign failed":                    {own, failing(labelled(renamed(readyKustomization))), verdict.Ready},
		"own ready, foreign of the same name failed":   {own, failing(labelled(elsewhere(readyKustomization))), verdict.Ready},
		"own failed, foreign ready":                    {failing(own), labelled(renamed(readyKustomization)), verdict.Failed},
		"own failed, foreign of the same name ready":   {failing(own), labelled(elsewhere(readyKustomization)), verdict.Failed},
		"own missing, foreign ready":                   {"", labelled(renamed(readyKustomization)), verdict.Progressing},
		"own missing, foreign of the same name ready":  {"", labelled(elsewhere(readyKustomization)), verdict.Progressing},
		"own missing, foreign of the same name failed": {"", failing(labelled(elsewhere(readyKustomization))), verdict.Progressing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents := root + "\n---" + readySource + "\n---" + test.foreign
			if test.own != "" {
				documents += "\n---" + test.own
			}
			listed := reconciler.Answer{Objects: parseObjects(t, documents)}
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
				t.Errorf("got %s: %s, want %s", got.Verdict, got.Message, test.want)
			}
			if len(cluster.Leftover) != 1 || cluster.Verdict == verdict.Ready {
				t.Errorf("the cluster is %s, and still has %v", cluster.Verdict, cluster.Leftover)
			}
		})
	}
}

// Objects of Argo CD and Rancher Fleet have labels, too. On a hub, the owning ApplicationSet decides the assignment of an Application.
func TestForeignLabelsDoNotChangeVerdictsOfOtherAgents(t *testing.T) {
	t.Parallel()
	const labels = "labels: {flotilla.dev/owner: dev, flotilla.dev/host: drone, flotilla.dev/deployment-target: web}"
	at := folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}
	inFolder := `repoURL: "https://git.example.com/gitops", path: drone, targetRevision: dev`
	ofWeb := `repoURL: "https://git.example.com/web", path: ".", targetRevision: v1`
	failingArgo := func(text string) string {
		return replaceOnce(t, text, "phase: Succeeded", "phase: Failed, message: no such field")
	}
	repo := func(name, owner string) string { // returns a GitRepo with its Bundle and BundleDeployment
		return strings.NewReplacer("{name: web,", "{name: "+name+", "+owner, "name: web-web", "name: "+name+"-web", "repo-name: web", "repo-name: "+name).
			Replace(readyRepo)
	}
	bySet := func(set string) string {
		return labels + ", ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: " + set + ", uid: x, controller: true}]"
	}
	for name, agent := range map[string]struct {
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
				return replaceOnce(t, text, `{type: Accepted, status: "True"}`, `{type: Accepted, status: "False", message: no such branch}`)
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
		for row, test := range map[string]struct {
			own, foreign string // "" for none
			want         verdict.Verdict
		}{
			"own ready, foreign failed":   {agent.own, agent.failing(agent.foreign), verdict.Ready},
			"own failed, foreign ready":   {agent.failing(agent.own), agent.foreign, verdict.Failed},
			"own missing, foreign ready":  {"", agent.foreign, verdict.Progressing},
			"own missing, foreign failed": {"", agent.failing(agent.foreign), verdict.Progressing},
		} {
			t.Run(name+": "+row, func(t *testing.T) {
				t.Parallel()
				documents := strings.TrimSpace(agent.root) + "\n---" + test.foreign
				if test.own != "" {
					documents += "\n---" + test.own
				}
				result := observe.Observe(observe.FleetReports{
					Time: time.Unix(2e9, 0), Tip: tip, Types: map[string]string{"drone-1": "drone"},
					Reports:     map[string]observe.ClusterReport{"drone-1": agent.read(reconciler.Answer{Objects: parseObjects(t, documents)})},
					OwnerLabels: []string{"dev"}, HostLabels: map[string]string{"drone": "drone"},
					Commits: map[string]gitops.ReportedCommit{older: {ID: older, Trees: map[string]map[string]string{"drone": {"web": treeA}}}},
					Folders: []observe.WrittenFolder{{Host: "drone", DeploymentTarget: "web", Tree: treeA, Objects: []reconciler.ObjectName{agent.object}}},
				})
				cluster := result.Clusters[0]
				if got := cluster.Assignments[0]; got.Verdict != test.want {
					t.Errorf("got %s: %s, want %s", got.Verdict, got.Message, test.want)
				}
				if len(cluster.Leftover) != 1 || cluster.Verdict == verdict.Ready {
					t.Errorf("the cluster is %s, and still has %v", cluster.Verdict, cluster.Leftover)
				}
			})
		}
	}
}
