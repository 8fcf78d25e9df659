package provider_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestAPreviewHasTheFinalObjectsOfAChart(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	attributes := map[string]any{"render": "preview", "kubernetes_version": "1.33", "api_versions": []any{"monitoring.coreos.com/v1/ServiceMonitor"}}
	for name, fleet := range map[string]map[string]any{
		"Flux":                              renderedFleet(pin, tillManifests(charts), map[string]any{"config_as": []any{"values"}}, attributes),
		"Argo CD, by the deployment target": renderedFleet(pin, tillManifests(charts), map[string]any{"config_as": []any{"values"}, "render": "preview"}, mergeMaps(attributes, map[string]any{"reconciler": "argocd", "render": nil})),
		"Argo CD on a hub":                  renderedFleet(pin, tillManifests(charts), map[string]any{"config_as": []any{"values"}}, mergeMaps(attributes, map[string]any{"reconciler": "argocd-hub"})),
	} {
		got, images, messages := readFinalObjects(t, fleet)
		deployment := got["apps/v1 Deployment dev-store-till-live/till by chart <nil>"]
		for _, want := range []string{"replicas: 3\n", "kubernetes: v1.33\n", "monitored: \"true\"\n", "image: registry.example.com/till:v1\n"} {
			if !strings.Contains(deployment, want) {
				t.Errorf("%s: the Deployment lacks %q: %q; messages: %s", name, want, got, messages)
			}
		}
		secret := got["v1 Secret dev-store-till-live/till by chart <nil>"]
		if !strings.Contains(secret, "password: (hidden)") || strings.Contains(fmt.Sprint(got), "canary-secret") {
			t.Errorf("%s: the objects are %q", name, got)
		}
		if got["batch/v1 Job dev-store-till-live/migrate by chart pre-upgrade"] == "" || len(got) != 3 {
			t.Errorf("%s: the objects are %q", name, got)
		}
		if fmt.Sprint(images) != "[registry.example.com/migrate:v1 registry.example.com/till:v1]" {
			t.Errorf("%s: the images are %v", name, images)
		}
	}
	allowed := renderedFleet(pin, tillManifests(charts), map[string]any{"render": "pointers"}, attributes)
	allowed["workspaces"] = []any{map[string]any{"name": "team", "least_render": "pointers"}}
	if got, images, messages := readFinalObjects(t, allowed); len(got)+len(images) > 0 {
		t.Errorf("with pointers the objects are %q, %v; messages: %s", got, images, messages)
	}
	if charts.fetched != 1 {
		t.Errorf("the chart was fetched %d times", charts.fetched)
	}
	charts.isDown = true // a new provider reads the cache
	if got, _, messages := readFinalObjects(t, renderedFleet(pin, tillManifests(charts), nil, attributes)); len(got) != 3 {
		t.Errorf("while the repository is down, the objects are %q; messages: %s", got, messages)
	}
}

func TestAPreviewHasTheFinalObjectsOfAFolder(t *testing.T) {
	t.Parallel()
	repo, commit := serveRepository(t, map[string]string{
		"plain/all.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {region: \"${REGION}\"}\n",
		"built/kustomization.yaml": "namePrefix: a-\nresources: [all.yaml]\n",
		"built/all.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\n",
		"pages/[id].tsx":           "which no kustomization has",
	})
	for _, test := range []struct{ reconciler, path, name, with string }{
		{"flux", "plain", "v1 ConfigMap dev-store-till-live/greeting by kustomization <nil>", "region: east"},
		{"flux", "built", "v1 ConfigMap dev-store-till-live/a-greeting by kustomization <nil>", ""},
		{"argocd", "plain", "v1 ConfigMap dev-store-till-live/greeting by manifest <nil>", "region: ${REGION}"},
		{"argocd", "built", "v1 ConfigMap dev-store-till-live/a-greeting by kustomization <nil>", ""},
	} {
		further := map[string]any{"render": "preview"}
		if test.reconciler == "flux" {
			further["config_as"] = []any{"substitute"}
		}
		fleet := renderedFleet(
			folder.Pin{},
			map[string]any{"repo": repo, "commit": commit, "path": test.path},
			further,
			map[string]any{"reconciler": test.reconciler},
		)
		fleet["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"REGION": "east"}}}
		got, _, messages := readFinalObjects(t, fleet)
		if yaml, has := got[test.name]; !has || !strings.Contains(yaml, test.with) || len(got) != 1 {
			t.Errorf("%s, %s: the objects are %q; messages: %s", test.reconciler, test.path, got, messages)
		}
	}
}

// Such a file changes the output of an agent. The plan shows the output or refuses the file.
func TestFilesOfTheTeamCannotHideObjects(t *testing.T) {
	t.Parallel()
	object := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	serveWith := func(name, content string) (repo, commit string) {
		return serveRepository(t, map[string]string{
			"live/kustomization.yaml": "resources: [good.yaml]\n", "live/good.yaml": object("good"), "live/evil.yaml": object("evil"), name: content,
		})
	}
	rule := withConstraints(rule("no-evil", "object.metadata.name != 'evil'", "match", map[string]any{"kinds": []any{"ConfigMap"}}))
	for _, test := range []struct{ reconciler, file, content, want string }{
		{"flux", "README.md", "harmless", ""},
		{"flux", ".sourceignore", "kustomization.yaml\n", `"no-evil" is violated`},
		{"flux", "live/.sourceignore", "kustomization.yaml\n", `"no-evil" is violated`},
		{"flux", "live/kustomization.yaml", "-> ../README", `"no-evil" is violated`},
		{"flux", "live/.argocd-source.yaml", "kustomize: {namePrefix: a-}\n", ""},
		{"argocd", ".sourceignore", "kustomization.yaml\n", ""},
		{"argocd", "live/.argocd-source.yaml", "directory: {recurse: true}\n", "file live/.argocd-source.yaml changes what the agent renders"},
		{"argocd", "live/.argocd-source-dev-store-till-live.yaml", "directory: {}\n", "file live/.argocd-source-dev-store-till-live.yaml changes what the agent renders"},
		{"argocd-hub", "live/.argocd-source-dev-store-till-live-east.yaml", "directory: {}\n", "changes what the agent renders"},
	} {
		repo, commit := serveWith(test.file, test.content)
		manifests := map[string]any{"repo": repo, "commit": commit, "path": "live"}
		fleet := mergeMaps(
			renderedFleet(folder.Pin{}, manifests, map[string]any{"render": "preview"}, map[string]any{"reconciler": test.reconciler}),
			rule,
		)
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		text := strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
		if test.want == "" && diags.Err() != nil || !strings.Contains(text, test.want) {
			t.Errorf("%s with %s: got %s, want %q", test.reconciler, test.file, text, test.want)
		}
	}
}

// The folders are the same with and without a preview.
func TestAPreviewChangesNoFolder(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(renderedFleet(pin, tillManifests(charts), nil, nil)), nil))
	preview := assigned(url, fleetOf(renderedFleet(pin, tillManifests(charts), nil, map[string]any{"render": "preview"})), nil)
	if plan := apply(t, w, preview); !plan.Empty() {
		t.Errorf("with a preview, the plan has %v", plan.Change(assignment).After)
	}
	if charts.fetched != 1 {
		t.Errorf("the chart was fetched %d times", charts.fetched)
	}
}

func TestManifestsThatCannotBeRenderedFailThePlan(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	publish := func(version, template string) folder.Pin {
		return charts.publish(t, version, map[string]string{"templates/all.yaml": template})
	}
	missing := publish("1.9.9", "")
	delete(charts.archives, "/till-1.9.9.tgz")
	preview := map[string]any{"render": "preview"}
	unpinned := func(manifests map[string]any) map[string]any {
		return renderedFleet(folder.Pin{}, manifests, preview, nil)
	}
	pinned := func(pin folder.Pin) map[string]any { return renderedFleet(pin, tillManifests(charts), preview, nil) }
	for name, test := range map[string]struct {
		fleet map[string]any
		want  []string
	}{
		"a chart that fails": {pinned(publish("1.0.1", "\n{{ fail \"give me a name\" }}")), []string{
			"Manifests cannot be rendered", `"till-live": chart till 1.0.1 of ` + charts.url, "templates/all.yaml:2", "give me a name",
		}},
		"a chart with random output": {pinned(publish("1.0.2", "a: {{ randAlphaNum 8 }}")), []string{"Manifests cannot be rendered", "chart till 1.0.2", "templates/all.yaml", "randAlphaNum"}},
		"a missing chart":            {pinned(missing), []string{"Manifests cannot be rendered", `"till-live"`, charts.url}},
		"a branch":                   {unpinned(map[string]any{"repo": "https://git.example.com/app", "branch": "main"}), []string{"Invalid rendering", `workloads["till"].deployment_targets["live"].manifests: are not pinned`, "flotilla_artifacts", "or give the full id of a commit"}},
		"a range":                    {unpinned(tillManifests(charts)), []string{"Invalid rendering", "are not pinned", "flotilla_artifacts"}},
		"another reconciler": {renderedFleet(publish("1.0.3", ""), tillManifests(charts), preview, map[string]any{"reconciler": "fleet"}), []string{
			"Invalid rendering", `cluster_types["store"].reconciler: is "fleet", and deployment target "till-live" has render = "preview": final objects are rendered for Flux and Argo CD alone`,
		}},
		"an unsupported field": {renderedFleet(publish("1.0.4", ""), mergeMaps(tillManifests(charts), map[string]any{"parameters": map[string]any{"helm_release": map[string]any{
			"postRenderStrategy": "nohooks",
		}}}), preview, nil), []string{"Manifests cannot be rendered", "spec.postRenderStrategy can only be"}},
		"a value of the cluster": {renderedFleet(publish("1.0.6", ""), tillManifests(charts), mergeMaps(preview, map[string]any{"config_as": []any{"configmap"}}), map[string]any{"parameters": map[string]any{
			"helm_release": map[string]any{"valuesFrom": []any{map[string]any{"kind": "ConfigMap", "name": "a"}}},
		}}), []string{"Manifests cannot be rendered", "spec.valuesFrom cannot be rendered: its values are on the cluster alone"}},
		"an invalid value of render": {renderedFleet(publish("1.0.5", ""), tillManifests(charts), map[string]any{"render": "all"}, nil), []string{`render: must be one of pointers, preview`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, w := bare(t), providertest.New(startProvider)
			_, diags := w.Apply(t.Context(), assigned(url, fleetOf(test.fleet), nil))
			text := strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
			for _, want := range test.want {
				if diags.Err() == nil || !strings.Contains(text, want) {
					t.Errorf("got %s, want %q", text, want)
				}
			}
			if _, err := os.Stat(url); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestRulesHoldForFinalObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	plan := func(rules ...any) string {
		fleet := mergeMaps(renderedFleet(pin, tillManifests(charts), map[string]any{"render": "preview"}, nil), withConstraints(rules...))
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		return strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
	}
	if messages := plan(
		rule("registries", "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))", "match", map[string]any{"kinds": []any{"Deployment", "Job"}}),
		rule("who", "made_by == (object.kind in ['Deployment', 'Secret', 'Job'] ? 'chart' : 'flotilla')"),
	); strings.Contains(messages, "Constraint") {
		t.Errorf("fulfilled rules: got %s", messages)
	}
	messages := plan(
		rule(
			"few",
			"object.spec.replicas > 3",
			"match",
			map[string]any{"kinds": []any{"apps/Deployment"}},
			"message_expression",
			"'too few, by its ' + made_by",
		),
	)
	for _, want := range []string{"Constraint is violated", `"few" is violated by 1 of 1`, `"store/till-live", Deployment dev-store-till-live/till (by its chart)`, "too few, by its chart"} {
		if !strings.Contains(messages, want) {
			t.Errorf("got %s, want %q", messages, want)
		}
	}
}

// This holds for one cluster type and for many.
func TestADeploymentTargetCannotWeakenRendering(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	rules := withConstraints(rule("few", "object.spec.replicas > 3", "match", map[string]any{"kinds": []any{"apps/Deployment"}}))
	plan := func(render string, workspace map[string]any, clusterTypes ...any) string {
		fleet := mergeMaps(renderedFleet(pin, tillManifests(charts), map[string]any{"render": render}, nil), rules)
		fleet["cluster_types"] = clusterTypes
		fleet["workspaces"] = []any{mergeMaps(map[string]any{"name": "team"}, workspace)}
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		return strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
	}
	store := map[string]any{"name": "store", "render": "preview"}
	kiosk, depot := map[string]any{"name": "kiosk", "render": "preview"}, map[string]any{"name": "depot"}
	const weak = `workloads["till"].deployment_targets["live"].render: "pointers" is weaker than render = "preview" of cluster type `
	messages := plan("pointers", nil, store, kiosk, depot)
	for _, want := range []string{"Invalid rendering", weak + `"kiosk", "store": leave it out`, `least_render = "pointers" for workspace "team"`} {
		if !strings.Contains(messages, want) {
			t.Errorf("got %s, want %q", messages, want)
		}
	}
	if messages := plan("preview", nil, map[string]any{"name": "store", "render": "objects"}); !strings.Contains(
		messages,
		`"preview" is weaker than render = "objects"`,
	) {
		t.Errorf("with a preview instead of objects: got %s", messages)
	}
	if messages := plan("preview", map[string]any{"least_render": "pointers"}, store); !strings.Contains(messages, `"few" is violated`) {
		t.Errorf("the rule does not hold: %s", messages)
	}
	if messages := plan("pointers", map[string]any{"least_render": "pointers"}, store); strings.Contains(messages, "weaker") ||
		strings.Contains(messages, "violated") {
		t.Errorf("with least_render of the workspace: got %s", messages)
	}
}

// The chart renders harmless objects on install and others on upgrade. The rules apply to both.
func TestThePlanShowsTheObjectsOfAnUpgrade(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.3.0", map[string]string{"templates/all.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: {{ ternary "evil" "good" .Release.IsUpgrade }}}
{{ if .Release.IsUpgrade }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: later}
{{ end }}
`})
	preview := map[string]any{"render": "preview"}
	listObjects := func(reconciler string) []string {
		read, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{
			"fleet": fleetOf(renderedFleet(pin, tillManifests(charts), preview, map[string]any{"reconciler": reconciler})),
		})
		var all []string
		for _, one := range asList(read["objects"]) {
			o := one.(map[string]any)
			all = append(all, fmt.Sprintf("%v %v %t", o["name"], o["on"], strings.Contains(o["yaml"].(string), "evil")))
		}
		if diags.Err() != nil {
			t.Error(diags)
		}
		return all
	}
	if got := listObjects("flux"); !slices.Equal(got, []string{"later upgrade false", "settings install false", "settings upgrade true"}) {
		t.Errorf("Flux: got %q", got)
	}
	if got := listObjects("argocd"); !slices.Equal(got, []string{"settings <nil> false"}) {
		t.Errorf("Argo CD: got %q", got)
	}
	plan := func(attributes map[string]any) string {
		rules := withConstraints(rule("no-evil", "object.?data.mode.orValue('') != 'evil'", "match", map[string]any{"kinds": []any{"ConfigMap"}}))
		fleet := mergeMaps(renderedFleet(pin, tillManifests(charts), attributes, nil), rules)
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		return strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
	}
	if messages, want := plan(preview), `"store/till-live", ConfigMap dev-store-till-live/settings on upgrade (by its chart)`; !strings.Contains(
		messages,
		want,
	) {
		t.Errorf("got %s, want %q", messages, want)
	}
	messages := plan(map[string]any{"render": "objects"})
	for _, want := range []string{`ConfigMap "settings" is not the same on install and on upgrade`, `ConfigMap "later" is not`, `render = "preview"`} {
		if !strings.Contains(messages, want) {
			t.Errorf("with objects: got %s, want %q", messages, want)
		}
	}

	url, w := bare(t), providertest.New(startProvider)
	unchangedPin := charts.publish(
		t,
		"1.2.9",
		map[string]string{"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: good}\n"},
	)
	apply(t, w, assigned(url, fleetOf(renderedFleet(unchangedPin, tillManifests(charts), preview, nil)), nil))
	planned, _ := w.Plan(t.Context(), assigned(url, fleetOf(renderedFleet(pin, tillManifests(charts), preview, nil)), nil))
	lines := fmt.Sprint(planned.Change(assignment).After)
	for _, want := range []string{"+ ConfigMap later on upgrade", "settings on install", "settings on upgrade", "- ConfigMap settings"} {
		if !strings.Contains(lines, want) {
			t.Errorf("the changes are %s, want %q", lines, want)
		}
	}
	read, unread := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_diff", map[string]any{
		"name": "dev", "fleet": fleetOf(renderedFleet(pin, tillManifests(charts), preview, nil)),
		"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
	})
	if text := fmt.Sprint(read["objects"]); !strings.Contains(text, "+# on upgrade\n") || !strings.Contains(text, "+  mode: evil\n") {
		t.Errorf("the difference is\n%s\nmessages: %s", text, unread)
	}
}

// Flux appends the commit to the version of a chart in Git, and charts use the version in labels.
func TestAPreviewHasTheVersionThatFluxGivesAChart(t *testing.T) {
	t.Parallel()
	repo, commit := serveRepository(t, map[string]string{
		"till/Chart.yaml":         "apiVersion: v2\nname: till\nversion: 1.2.3\n",
		"till/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {version: {{ .Chart.Version }}}\n",
	})
	for reconciler, want := range map[string]string{"flux": "version: 1.2.3+" + commit[:12] + "\n", "argocd": "version: 1.2.3\n"} {
		manifests := map[string]any{"repo": repo, "commit": commit, "path": "till", "type": "helm"}
		got, _, messages := readFinalObjects(
			t,
			renderedFleet(folder.Pin{}, manifests, map[string]any{"render": "preview"}, map[string]any{"reconciler": reconciler}),
		)
		if text := fmt.Sprint(got); !strings.Contains(text, want) {
			t.Errorf("%s: the objects are %s, want %q; messages: %s", reconciler, text, want, messages)
		}
	}
}

// Flux passes the version of the cluster to charts as reported; Argo CD passes only its numbers.
func TestChartsSeeTheVersionOfKubernetesAsAgentsGiveIt(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(
		t,
		"1.2.1",
		map[string]string{
			"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {version: {{ .Capabilities.KubeVersion.Version }}}\n",
		},
	)
	for reconciler, want := range map[string]string{"flux": "version: v1.34.2+k3s1\n", "argocd": "version: v1.34.2\n", "argocd-hub": "version: v1.34.2\n"} {
		clusterType := map[string]any{"reconciler": reconciler, "kubernetes_version": "v1.34.2+k3s1"}
		got, _, messages := readFinalObjects(t, renderedFleet(pin, tillManifests(charts), map[string]any{"render": "preview"}, clusterType))
		if text := fmt.Sprint(got); !strings.Contains(text, want) {
			t.Errorf("%s: the objects are %s, want %q; messages: %s", reconciler, text, want, messages)
		}
	}
}

// Nothing is rendered before the pins are known.
func TestUnknownPinsAreRenderedAtApply(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": "{{ fail \"never\" }}"})
	fleet := renderedFleet(pin, tillManifests(charts), map[string]any{"render": "preview"}, nil)
	fleet["artifacts"] = providertest.Unknown{Then: fleet["artifacts"]}
	w := providertest.New(startProvider)
	if _, diags := w.Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil)); diags.Err() != nil {
		t.Errorf("the plan says %s", diags)
	}
	url := bare(t)
	if _, diags := w.Apply(t.Context(), assigned(url, fleetOf(fleet), nil)); !strings.Contains(
		fmt.Sprint(diags),
		"Manifests cannot be rendered",
	) {
		t.Errorf("the apply says %s", diags)
	}
}
