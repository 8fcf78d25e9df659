package provider_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// previewFleet returns a fleet that previews one deployment target on a number of hosts.
func previewFleet(p *chartServer, pin folder.Pin, hosts int, clusterType, data map[string]any) map[string]any {
	fleet := renderedFleet(pin, tillManifests(p), map[string]any{"config_as": []any{"values"}}, nil)
	types := []any{mergeMaps(map[string]any{"name": "store", "render": "preview"}, clusterType)}
	for i := 1; i < hosts; i++ {
		types = append(types, mergeMaps(map[string]any{"name": fmt.Sprintf("store-%03d", i), "render": "preview"}, clusterType))
	}
	fleet["cluster_types"] = types
	fleet["config_containers"] = []any{map[string]any{"name": "all", "data": mergeMaps(map[string]any{"replicas": 3}, data)}}
	return fleet
}

// changedTillFiles returns tillFiles with another tag. replace has pairs of old and new text.
func changedTillFiles(tag string, replace ...string) map[string]string {
	files := maps.Clone(tillFiles)
	files["values.yaml"] = strings.ReplaceAll(files["values.yaml"], "v1", tag)
	files["templates/all.yaml"] = strings.NewReplacer(replace...).Replace(files["templates/all.yaml"])
	return files
}

func TestAPlanSaysHowFinalObjectsChange(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	one := charts.publish(t, "1.2.1", tillFiles)
	for name, test := range map[string]struct {
		pin         folder.Pin
		clusterType map[string]any
		data        map[string]any
		want        []string
	}{
		"a chart with another image": {
			charts.publish(t, "1.2.2", changedTillFiles("v2")), nil, nil,
			[]string{objectLine("Deployment till", "spec.template.spec.containers[till].image", "store/till-live", causeByChart("till", "1.2.1", "1.2.2"))},
		},
		"a chart with other objects and another secret": {
			charts.publish(t, "1.3.0", changedTillFiles("v1", "name: migrate,", "name: move,", "canary-secret", "canary-other")), nil, nil,
			[]string{
				wholeObjectLine(changes.New, "Job move", "store/till-live", causeByChart("till", "1.2.1", "1.3.0")),
				wholeObjectLine(changes.Removed, "Job migrate", "store/till-live", causeByChart("till", "1.2.1", "1.3.0")),
				objectLine("Secret till", "stringData.password", "store/till-live", causeByChart("till", "1.2.1", "1.3.0")),
			},
		},
		"a chart with the same objects": {
			charts.publish(t, "1.4.0", tillFiles), nil, nil,
			[]string{noObjectLine("store/till-live", causeByChart("till", "1.2.1", "1.4.0"))},
		},
		"a value": {
			one, nil, map[string]any{"replicas": 4},
			[]string{
				objectLine("Deployment till", "spec.replicas", "store/till-live", causeBy(changes.ByContainer, "all")),
				fileLine("reconciler.yaml", "HelmRelease spec.values.replicas", "store/till-live", causeBy(changes.ByContainer, "all")),
			},
		},
		"a value that the chart does not use": {
			one, nil, map[string]any{"unused": "canary-value"},
			[]string{
				noObjectLine("store/till-live", causeBy(changes.ByContainer, "all")),
				fileLine("reconciler.yaml", "HelmRelease spec.values.unused:new", "store/till-live", causeBy(changes.ByContainer, "all")),
			},
		},
		"another chart and another version of Kubernetes": {
			charts.publish(t, "1.5.0", changedTillFiles("v2")), map[string]any{"kubernetes_version": "1.34"}, nil,
			[]string{objectLine("Deployment till", "metadata.annotations.kubernetes, spec.template.spec.containers[till].image", "store/till-live", causeByChart("till", "1.2.1", "1.5.0"), causeBy(changes.ByClusterType, "store"))},
		},
	} {
		for _, reconciler := range []string{"flux", "argocd", "argocd-hub"} {
			t.Run(name+", "+reconciler, func(t *testing.T) {
				t.Parallel()
				url, w := bare(t), providertest.New(startProvider)
				attributes := map[string]any{"reconciler": reconciler, "kubernetes_version": "1.33"}
				apply(t, w, assigned(url, fleetOf(previewFleet(charts, one, 1, attributes, nil)), nil))
				changed := assigned(url, fleetOf(previewFleet(charts, test.pin, 1, mergeMaps(attributes, test.clusterType), test.data)), nil)
				plan, diags := w.Plan(t.Context(), changed)
				if diags.Err() != nil {
					t.Fatal(diags)
				}
				got := linesOf(plan)
				want := slices.Concat([]string{countLine(changes.Counts{Hosts: 1, Changed: 1, Total: 1})}, test.want)
				values := map[string]string{
					"flux": "HelmRelease spec.values", "argocd": "spec.source.helm.valuesObject", "argocd-hub": "spec.template.spec.source.helm.valuesObject",
				}
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], "HelmRelease spec.values", values[reconciler])
				}
				if !slices.Equal(got, want) {
					t.Errorf("changes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if text := fmt.Sprint(plan.Change(assignment).After, diags); strings.Contains(text, "canary") {
					t.Errorf("the plan has a value: %s", text)
				}
				if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil { // in another process
					t.Error(diags)
				}
				if plan := apply(t, w, changed); !plan.Empty() {
					t.Errorf("the second plan has %v", plan.Change(assignment).After)
				}
			})
		}
	}
}

func TestAChartUpdateOnManyHostsTakesFewLines(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	publishVersion := func(publishVersion string) folder.Pin {
		return charts.publish(t, publishVersion, map[string]string{"templates/all.yaml": `
{{- range until 30 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c{{ . }}, labels: {helm.sh/chart: {{ $.Chart.Version }}}}
data: {a{{ . }}: canary-{{ $.Chart.Version }}}
{{- end }}
`})
	}
	url, w := bare(t), providertest.New(startProvider)
	const hosts = 25
	apply(t, w, assigned(url, fleetOf(previewFleet(charts, publishVersion("3.2.0"), hosts, nil, nil)), nil))
	plan, diags := w.Plan(t.Context(), assigned(url, fleetOf(previewFleet(charts, publishVersion("3.2.1"), hosts, nil, nil)), nil))
	lines := linesOf(plan)
	text := strings.Join(lines, "\n")
	everywhere := []string{"store/till-live"}
	for i := range hosts - 1 {
		everywhere = append(everywhere, fmt.Sprintf("store-%03d/till-live", i+1))
	}
	wantLine := func(keys string, objects ...string) string {
		line := changedLine(changes.ObjectLine, "", keys, strings.Join(everywhere, ", "), []changes.Cause{causeByChart("till", "3.2.0", "3.2.1")})
		line.Files = objects
		return lineText(line)
	}
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("ConfigMap c%d", i))
	}
	if diags.Err() != nil || len(lines) < 2 || len(lines) >= 20 || strings.Contains(text, "canary") ||
		lines[1] != wantLine(`metadata.labels["helm.sh/chart"]`, all...) || !strings.Contains(text, wantLine("data.a0", "ConfigMap c0")) {
		t.Errorf("messages: %s; changes:\n%s", diags, text)
	}
}

// The plan lists the changed pointers, and says that the former objects are unknown.
func TestAPlanWorksWithoutTheFormerChart(t *testing.T) {
	charts := newChartServer(t)
	one, two, three := charts.publish(
		t,
		"1.2.1",
		tillFiles,
	), charts.publish(
		t,
		"1.2.2",
		changedTillFiles("v2"),
	), charts.publish(
		t,
		"1.2.3",
		changedTillFiles("v3"),
	)
	url, w := bare(t), providertest.New(startProvider)
	configuration := func(pin folder.Pin) providertest.Configuration {
		return assigned(url, fleetOf(previewFleet(charts, pin, 1, nil, nil)), nil)
	}
	removeChart := func(version string) {
		useNewCache(t) // another machine
		charts.mutex.Lock()
		defer charts.mutex.Unlock()
		delete(charts.archives, "/till-"+version+".tgz")
	}
	commits := func() string { return git(t, filepath.FromSlash(url), "rev-list", "--count", "dev") }
	useNewCache(t)
	apply(t, w, configuration(one))

	removeChart("1.2.1")
	plan, diags := w.Plan(t.Context(), configuration(two))
	if _, isUnknown := field(plan.Change(assignment).After, "changes").(providertest.Unknown); diags.Err() != nil || !isUnknown {
		t.Errorf("messages: %s; the plan is %v", diags, plan.Change(assignment).After)
	}
	read, _ := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_diff", map[string]any{
		"fleet": fleetOf(
			previewFleet(charts, two, 1, nil, nil),
		), "name": "dev", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
	})
	if want := "# store/till-live: the former final objects are not known: till 1.2.1 of " + charts.url + " cannot be fetched or rendered any more.\n"; read["objects"] != want {
		t.Errorf("the difference of objects is %q, want %q", read["objects"], want)
	}
	text := strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
	want := []string{
		formerUnknownLine("till 1.2.1 of "+charts.url+" cannot be fetched or rendered any more", "store/till-live", causeByChart("till", "1.2.1", "1.2.2")),
		fileLine("reconciler.yaml", `HelmRelease metadata.annotations["flotilla.dev/digest"], HelmRelease spec.chart.spec.version`, "store/till-live", causeBy(changes.ByWorkload, "till")),
	}
	for _, line := range append(want, "Changes that are known so far") {
		if !strings.Contains(text, line) {
			t.Errorf("got %s, want %s", text, line)
		}
	}
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan, diags := w.Plan(t.Context(), configuration(two)); diags.Err() != nil || !plan.Empty() || len(diags) > 0 {
		t.Errorf("the second plan is not empty, or says %s", diags)
	}

	// A plan that compared the former objects is applied only if the former chart is still available.
	if plan, diags = w.Plan(t.Context(), configuration(three)); diags.Err() != nil || len(linesOf(plan)) != 2 {
		t.Errorf("messages: %s; changes: %q", diags, linesOf(plan))
	}
	removeChart("1.2.2")
	before := commits()
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() == nil || commits() != before {
		t.Errorf("a late apply says %s, and makes %s commits of %s", diags, commits(), before)
	}
	apply(t, w, configuration(three))
}

func TestTheDiffHasFinalObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	one, two := charts.publish(
		t,
		"1.2.1",
		tillFiles,
	), charts.publish(
		t,
		"1.2.2",
		changedTillFiles("v2", "canary-secret", "canary-other", "name: migrate,", "name: move,"),
	)
	url, w := bare(t), providertest.New(startProvider)
	read := func(fleet map[string]any) (diff, objects string) {
		read, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_diff", map[string]any{
			"fleet": fleetOf(fleet), "name": "dev", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
		})
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		return fmt.Sprint(read["diff"]), fmt.Sprint(read["objects"])
	}
	before := previewFleet(charts, one, 1, nil, nil)
	if _, objects := read(before); !strings.Contains(objects, "--- /dev/null\n+++ b/clusters/all/store/till-live/objects.yaml\n") ||
		!strings.Contains(objects, "\n+  password: (hidden)\n") {
		t.Errorf("the objects of an added folder are\n%s", objects)
	}
	apply(t, w, assigned(url, fleetOf(before), nil))
	if diff, objects := read(before); diff+objects != "" {
		t.Errorf("the difference to the deployed content is\n%s%s", diff, objects)
	}
	diff, objects := read(previewFleet(charts, two, 1, nil, nil))
	for _, want := range []string{
		"diff --git a/clusters/all/store/till-live/objects.yaml b/clusters/all/store/till-live/objects.yaml\n",
		"\n-      - image: registry.example.com/till:v1\n+      - image: registry.example.com/till:v2\n", "\n-  password: (hidden)\n+  password: (hidden, changed)\n", "\n-  name: migrate\n", "\n+  name: move\n",
	} {
		if !strings.Contains(objects, want) {
			t.Errorf("the objects are\n%s\nwithout %q", objects, want)
		}
	}
	if strings.Contains(diff+objects, "canary") || strings.Contains(diff, "objects.yaml") {
		t.Errorf("the difference is\n%s\nand the difference of objects\n%s", diff, objects)
	}
}

// Another version of Kubernetes changes the rendered objects, but no folder.
func TestAPlanSaysWhatAnUpgradeOfKubernetesChanges(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	url, w := bare(t), providertest.New(startProvider)
	configuration := func(version string, further map[string]any) providertest.Configuration {
		return assigned(url, fleetOf(previewFleet(charts, pin, 2, mergeMaps(map[string]any{"kubernetes_version": version}, further), nil)), nil)
	}
	apply(t, w, configuration("1.33", nil))
	commits := git(t, filepath.FromSlash(url), "rev-list", "--count", "dev")
	deployment := func(field string) func(string, ...changes.Cause) string {
		return func(assignments string, causes ...changes.Cause) string {
			return objectLine("Deployment till", field, assignments, causes...)
		}
	}
	for _, test := range []struct {
		configuration providertest.Configuration
		line          func(assignments string, causes ...changes.Cause) string // for each of the two hosts
	}{
		{configuration("1.34", nil), deployment("metadata.annotations.kubernetes")},
		{
			configuration("1.34", map[string]any{"api_versions": []any{"monitoring.coreos.com/v1/ServiceMonitor"}}),
			deployment("metadata.annotations.monitored"),
		},
		{
			configuration("1.34", map[string]any{"api_versions": []any{"example.com/v1", "monitoring.coreos.com/v1/ServiceMonitor"}}),
			noObjectLine,
		},
	} {
		plan, diags := w.Plan(t.Context(), test.configuration)
		want := []string{
			test.line("store/till-live", causeBy(changes.ByClusterType, "store")),
			test.line("store-001/till-live", causeBy(changes.ByClusterType, "store-001")),
		}
		if lines := linesOf(plan); diags.Err() != nil || !slices.Equal(lines, want) {
			t.Errorf("messages: %s; changes:\n%s\nwant\n%s", diags, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
		if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
			t.Fatal(diags)
		}
		if plan := apply(t, w, test.configuration); !plan.Empty() {
			t.Errorf("the second plan has %v", plan.Change(assignment).After)
		}
	}
	if now := git(t, filepath.FromSlash(url), "rev-list", "--count", "dev"); now != commits {
		t.Errorf("the branch has %s commits, want %s", now, commits)
	}
}
