package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

var tillSecret = regexp.MustCompile(`(?s)---\napiVersion: v1\nkind: Secret.*?\n---\n`)

// chartWithoutSecret has the files of the chart "till" without its Secret, plus a CRD.
var chartWithoutSecret = map[string]string{
	"values.yaml":         tillFiles["values.yaml"],
	"templates/all.yaml":  tillSecret.ReplaceAllString(tillFiles["templates/all.yaml"], "---\n"),
	"templates/text.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: text}\ndata: {text: '{{ \"{{ .Values.a }}\" }}'}\n",
	"crds/tills.yaml":     "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Till, plural: tills}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n",
}

// objectsFleet returns a fleet whose deployment target "till-live" renders a chart, with this number of replicas.
func objectsFleet(charts *chartServer, pin folder.Pin, replicas int, render, reconciler string) map[string]any {
	fleet := renderedFleet(
		pin,
		tillManifests(charts),
		map[string]any{"config_as": []any{"values"}},
		map[string]any{"render": render, "reconciler": reconciler},
	)
	fleet["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"replicas": replicas}}}
	return fleet
}

const tillFolder = "clusters/all/store/till-live/"

// objectsFiles maps reconcilers to the file with the final objects of a chart, relative to the folder of an assignment.
var objectsFiles = map[string]string{
	"flux": "objects/charts/rendered/objects.yaml", "argocd": "objects/objects.yaml", "argocd-hub": "objects/objects.yaml",
}

// fileOnBranch returns a file on the branch, or "".
func fileOnBranch(t *testing.T, url, name string) string {
	t.Helper()
	if git(t, url, "ls-tree", "-r", "--name-only", "dev", "--", name) == "" {
		return ""
	}
	return git(t, url, "show", "dev:"+name)
}

// tillFileNames lists the files in tillFolder.
func tillFileNames(t *testing.T, url string) string {
	t.Helper()
	names := git(t, url, "ls-tree", "-r", "--name-only", "dev", "--", tillFolder)
	return strings.ReplaceAll(strings.ReplaceAll(names, tillFolder, ""), "\n", " ")
}

// The folder has the objects of the preview. Its reconciler renders the same objects from the folder.
func TestObjectsAreCommitted(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	const ofKustomize = "kustomization.yaml namespace.yaml objects/kustomization.yaml objects/objects.yaml reconciler.yaml"
	for _, reconciler := range []string{"flux", "argocd", "argocd-hub"} {
		want, _, messages := readFinalObjects(t, objectsFleet(charts, pin, 3, "preview", reconciler))
		if len(want) != 4 {
			t.Errorf("%s: the preview has %q; messages: %s", reconciler, want, messages)
		}
		url, w := bare(t), providertest.New(startProvider)
		configuration := assigned(url, fleetOf(objectsFleet(charts, pin, 3, "objects", reconciler)), nil)
		plan := apply(t, w, configuration)
		if again := apply(t, w, configuration); !again.Empty() {
			t.Errorf("%s: the second plan is %v, the first was %v", reconciler, again.Change(assignment).After, plan.Change(assignment).After)
		}
		names := tillFileNames(t, url)
		file := objectsFiles[reconciler]
		text := fileOnBranch(t, url, tillFolder+file)
		if isChart := reconciler == "flux"; isChart {
			if names != "kustomization.yaml namespace.yaml objects/Chart.yaml objects/charts/rendered/Chart.yaml objects/charts/rendered/crds/objects.yaml "+
				"objects/charts/rendered/objects.yaml objects/charts/rendered/templates/all.yaml reconciler.yaml" {
				t.Errorf("%s: the folder has %s", reconciler, names)
			}
			packed := map[string]string{}
			for _, name := range strings.Split(git(t, url, "ls-tree", "-r", "--name-only", "dev", "--", tillFolder+"objects/"), "\n") {
				packed[strings.TrimPrefix(name, tillFolder+"objects/")] = fileOnBranch(t, url, name) + "\n"
			}
			again := newChartServer(t)
			got, _, messages := readFinalObjects(t, objectsFleet(again, again.publish(t, "1.2.1", packed), 7, "preview", reconciler))
			if !maps.Equal(got, want) {
				t.Errorf("%s: the chart has %q, want %q; messages: %s", reconciler, got, want, messages)
			}
		} else if names != ofKustomize {
			t.Errorf("%s: the folder has %s", reconciler, names)
		}
		kinds := []string{"kind: ConfigMap", "kind: Deployment", "kind: Job"}
		last := 0
		for _, kind := range kinds { // sorted by group, kind, namespace, name
			at := strings.Index(text, kind)
			if kind == "kind: Deployment" && !strings.Contains(text, "replicas: 3\n") || at < last {
				t.Errorf("%s: the objects are %s", reconciler, text)
			}
			last = at
		}
		if !strings.Contains(text, "helm.sh/hook: pre-upgrade") || strings.Contains(text, "app.kubernetes.io/managed-by: Helm") {
			t.Errorf("%s: the objects are %s", reconciler, text)
		}
		reads, readDiags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{
			"fleet": fleetOf(
				objectsFleet(charts, pin, 3, "objects", reconciler),
			), "name": "dev", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
		})
		files, _ := reads["files"].(map[string]any)
		if file, _ := files["store/till-live/"+file].(string); strings.TrimSuffix(file, "\n") != text {
			t.Errorf("%s: flotilla_manifests has %q, %s", reconciler, slices.Sorted(maps.Keys(files)), readDiags)
		}
	}
}

// The object keeps its kind and name, so nothing is deleted.
func TestAChangeOfRenderingKeepsTheReconcilerObject(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	for reconciler, follows := range map[string][]string{
		"flux":       {"kind: HelmRelease\n", "chart: ./clusters/all/store/till-live/objects\n", "kind: GitRepository\n"},
		"argocd":     {"kind: Application\n", "path: clusters/all/store/till-live/objects\n", "kustomize:\n"},
		"argocd-hub": {"kind: ApplicationSet\n", "path: clusters/all/store/till-live/objects\n", "kustomize:\n"},
	} {
		url, w := bare(t), providertest.New(startProvider)
		applyRendering := func(render string) string {
			plan := apply(t, w, assigned(url, fleetOf(objectsFleet(charts, pin, 3, render, reconciler)), nil))
			if change := plan.Change(assignment); change.Action != providertest.Create && change.Action != providertest.Update {
				t.Errorf("%s, %s: the plan is %v", reconciler, render, change)
			}
			return fileOnBranch(t, url, tillFolder+"reconciler.yaml")
		}
		identityOf := func(text string) string { // of the last object, which deploys
			text = text[strings.LastIndex(text, "apiVersion: "):]
			identityOf, _, _ := strings.Cut(text, "\nspec:")
			return identityOf
		}
		pointers, objects, again := applyRendering("pointers"), applyRendering("objects"), applyRendering("pointers")
		if identityOf(pointers) != identityOf(objects) || pointers != again {
			t.Errorf("%s: the object is first %s, then %s, then %s", reconciler, pointers, objects, again)
		}
		for _, want := range follows {
			if !strings.Contains(objects, want) {
				t.Errorf("%s: the object is %s, want %q", reconciler, objects, want)
			}
		}
		if strings.Contains(objects, charts.url) {
			t.Errorf("%s: the object still points to the chart: %s", reconciler, objects)
		}
		if tillFileNames(t, url) != "namespace.yaml reconciler.yaml" {
			t.Errorf("%s: with pointers again, the folder has %s", reconciler, tillFileNames(t, url))
		}
	}
}

func TestChangedObjectsUpdateTheirReconcilerObject(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	for _, reconciler := range []string{"flux", "argocd"} {
		url, w := bare(t), providertest.New(startProvider)
		applyReplicas := func(replicas int) (text, follower, chart string) {
			apply(t, w, assigned(url, fleetOf(objectsFleet(charts, pin, replicas, "objects", reconciler)), nil))
			return fileOnBranch(
					t,
					url,
					tillFolder+objectsFiles[reconciler],
				), fileOnBranch(
					t,
					url,
					tillFolder+"reconciler.yaml",
				), fileOnBranch(
					t,
					url,
					tillFolder+"objects/Chart.yaml",
				)
		}
		text, follower, chart := applyReplicas(3)
		changed, next, nextChart := applyReplicas(4)
		if strings.ReplaceAll(text, "replicas: 3", "replicas: 4") != changed {
			t.Errorf("%s: the objects were %s, and are %s", reconciler, text, changed)
		}
		if follower == next || reconciler == "flux" && (chart == nextChart || !strings.Contains(chart, "version: 1.2.1+")) {
			t.Errorf("%s: the reconciler object was %s%s, and is %s%s", reconciler, follower, chart, next, nextChart)
		}
	}
}

func TestAPlanListsCommittedObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	newer := maps.Clone(chartWithoutSecret)
	newer["values.yaml"] = "replicas: 1\ntag: v2\n"
	next := charts.publish(t, "1.2.2", newer)
	for _, reconciler := range []string{"flux", "argocd"} {
		url, w := bare(t), providertest.New(startProvider)
		applyLines := func(pin folder.Pin, replicas int) string {
			return strings.Join(linesOf(apply(t, w, assigned(url, fleetOf(objectsFleet(charts, pin, replicas, "objects", reconciler)), nil))), "\n")
		}
		applyLines(pin, 3)
		if got := applyLines(pin, 4); !strings.Contains(got, objectLine("Deployment till", "spec.replicas", "store/till-live", causeBy(changes.ByContainer, "all"))) ||
			strings.Contains(got, "objects.yaml") {
			t.Errorf("%s: with other values, the plan says %s", reconciler, got)
		}
		if got := applyLines(next, 4); !strings.Contains(
			got,
			objectLine("Deployment till", "spec.template.spec.containers[till].image", "store/till-live", causeByChart("till", "1.2.1", "1.2.2")),
		) ||
			strings.Contains(got, "objects.yaml") {
			t.Errorf("%s: with another version, the plan says %s", reconciler, got)
		}
	}
}

func TestAWorkspacesProjectAllowsTheRepositoryOfItsObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	url, w := bare(t), providertest.New(startProvider)
	fleet := objectsFleet(charts, pin, 3, "objects", "argocd")
	fleet["workspaces"] = []any{map[string]any{"name": "team", "argocd_project": map[string]any{"name": "team", "render": true}}}
	fleet["cluster_types"].([]any)[0].(map[string]any)["parameters"] = map[string]any{"gitops_repository": "https://git.example.com/gitops"}
	apply(t, w, assigned(url, fleetOf(fleet), nil))
	text := fileOnBranch(t, url, tillFolder+"reconciler.yaml")
	if strings.Count(text, "https://git.example.com/gitops") != 2 || !strings.Contains(text, "kind: AppProject") {
		t.Errorf("the objects are %s", text)
	}
}

func TestObjectsThatCannotBeCommittedFailThePlan(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	secret := charts.publish(t, "1.2.1", tillFiles)
	open := charts.publish(t, "1.2.2", chartWithoutSecret)
	other := objectsFleet(charts, open, 3, "objects", "fleet")
	named := objectsFleet(charts, open, 3, "objects", "flux")
	named["workloads"].([]any)[0].(map[string]any)["deployment_targets"].(map[string]any)["live"].(map[string]any)["manifests"].(map[string]any)["parameters"] = map[string]any{
		"gitops_repository": "a",
	}
	number := objectsFleet(charts, open, 3, "objects", "flux")
	number["cluster_types"].([]any)[0].(map[string]any)["parameters"] = map[string]any{"gitops_repository": []any{}}
	unpinned := renderedFleet(folder.Pin{}, tillManifests(charts), map[string]any{"render": "objects"}, nil)
	for name, test := range map[string]struct {
		fleet map[string]any
		want  []string
	}{
		"a plain Secret": {objectsFleet(charts, secret, 3, "objects", "flux"), []string{
			"Manifests cannot be rendered", `eployment target "till-live": Secret "till" would be in the GitOps repository as plain text`, "SOPS",
		}},
		"another reconciler": {other, []string{`cluster_types["store"].reconciler: is "fleet"`, `render = "objects": final objects are rendered for Flux and Argo CD alone`}},
		"no pin":             {unpinned, []string{`deployment_targets["live"].manifests: are not pinned`, `render = "objects"`}},
		"a parameter of a deployment target": {named, []string{
			`deployment_targets["live"].manifests.parameters.gitops_repository: is for cluster types`,
		}},
		"a parameter that is no string": {number, []string{`cluster_types["store"].parameters.gitops_repository: must be a string`}},
	} {
		url, w := bare(t), providertest.New(startProvider)
		_, diags := w.Apply(t.Context(), assigned(url, fleetOf(test.fleet), nil))
		text := strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
		for _, want := range test.want {
			if diags.Err() == nil || !strings.Contains(text, want) || strings.Contains(text, "canary-secret") {
				t.Errorf("%s: got %s, want %q", name, text, want)
			}
		}
		if _, err := os.Stat(filepath.FromSlash(url)); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}
