package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// finalObjectNames returns the names of the final objects of a fleet, and the messages.
func finalObjectNames(t *testing.T, fleet map[string]any) (names []string, messages string) {
	t.Helper()
	all, _, messages := readFinalObjects(t, fleet)
	for name := range all {
		_, name, _ = strings.Cut(name, " dev-store-till-live/")
		name, _, _ = strings.Cut(name, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return names, strings.Join(strings.Fields(messages), " ")
}

// chartCases publishes each chart under a version of its own.
type chartCases struct {
	charts *chartServer
	number int
}

// fleet returns a fleet that renders the chart "till" from these files.
func (c *chartCases) fleet(t *testing.T, reconciler, render string, files map[string]string, parameters map[string]any) map[string]any {
	t.Helper()
	c.number++
	attributes := map[string]any{"reconciler": reconciler, "render": render}
	if parameters != nil {
		attributes["parameters"] = parameters
	}
	return renderedFleet(c.charts.publish(t, fmt.Sprintf("1.%d.0", c.number), files), tillManifests(c.charts), nil, attributes)
}

func (c *chartCases) preview(
	t *testing.T, reconciler string, files map[string]string, parameters map[string]any,
) (names []string, messages string) {
	t.Helper()
	return finalObjectNames(t, c.fleet(t, reconciler, "preview", files, parameters))
}

// plan plans to commit the objects and returns the messages.
func (c *chartCases) plan(t *testing.T, reconciler string, files map[string]string, parameters map[string]any) (messages string) {
	t.Helper()
	fleet := fleetOf(c.fleet(t, reconciler, "objects", files, parameters))
	_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleet, nil))
	return strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
}

const cannotBeRendered = "Manifests cannot be rendered"

const tillSettings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\n"

// The charts guard against some clusters, write the time into comments, and have tests with random values.
func TestChartsOfPractitionersAreRendered(t *testing.T) {
	t.Parallel()
	hook := func(name, hook, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + hook + "}}\ndata: {a: '" + data + "'}\n"
	}
	charts := chartCases{charts: newChartServer(t)}
	const found = `{{ if lookup "apps/v1" "Deployment" .Release.Namespace "old" }}`
	files := map[string]string{
		"templates/guard.yaml":    found + `{{ fail "read the notes first" }}{{ end }}` + "\n" + tillSettings,
		"templates/required.yaml": found + `{{ $_ := required "give a name" .Values.name }}{{ end }}`,
		"templates/time.yaml":     "# rendered at {{ now }}\n" + hook("time", "a: b", "c"),
		"templates/comment.yaml":  "# {{ randAlpha 5 }}\n",
		"templates/order.yaml": strings.ReplaceAll(tillSettings, "till", "order") +
			"data:\n{{- range keys (dict \"e\" 1 \"f\" 2) }}\n  {{ . }}: g\n{{- end }}\n",
		"templates/test.yaml": hook("test", "helm.sh/hook: test", "{{ randAlpha 5 }}"),
		"templates/both.yaml": hook("both", `helm.sh/hook: "test,pre-install"`, "c"),
	}
	for _, reconciler := range []string{"flux", "argocd", "argocd-hub"} {
		if got, messages := charts.preview(t, reconciler, files, nil); strings.Join(got, " ") != "both order till time" {
			t.Errorf("%s: got %q; messages: %s", reconciler, got, messages)
		}
		if messages := charts.plan(t, reconciler, files, nil); strings.Contains(messages, cannotBeRendered) {
			t.Errorf("%s: got %s", reconciler, messages)
		}
	}
	// Under Flux, a lookup reads the cluster. Under Argo CD, it finds nothing.
	lookups := map[string]string{"templates/a.yaml": tillSettings +
		`data: {a: "{{ with lookup "v1" "Secret" "a" "b" }}{{ .metadata.name }}{{ end }}"}`}
	if got, messages := charts.preview(t, "argocd", lookups, nil); len(got) != 1 {
		t.Errorf("Argo CD: got %q; messages: %s", got, messages)
	}
	const another = "templates/a.yaml renders something else each time, as it uses the function lookup"
	if _, messages := charts.preview(t, "flux", lookups, nil); !strings.Contains(messages, another) {
		t.Errorf("Flux: got %s", messages)
	}
	// The second rendering passes the guard, so the rest of the template counts.
	guarded := map[string]string{"templates/a.yaml": `{{ $s := lookup "v1" "Secret" "a" "b" }}{{ if $s }}{{ fail "no" }}{{ end }}` + "\n" +
		tillSettings + "data: {a: {{ if $s }}b{{ else }}c{{ end }}}\n"}
	if _, messages := charts.preview(t, "flux", guarded, nil); !strings.Contains(messages, "uses the function lookup") {
		t.Errorf("behind a guard: got %s", messages)
	}
	failing := map[string]string{"templates/a.yaml": `{{ with lookup "v1" "Secret" "a" "b" }}{{ .data.a.b }}{{ end }}`}
	const fails = "is rendered once, and fails when rendered again with another result, as it uses the function lookup"
	if _, messages := charts.preview(t, "flux", failing, nil); !strings.Contains(messages, fails) {
		t.Errorf("failing second rendering: got %s", messages)
	}
}

// TestAValueReplacesALookup plays the remedy of the guide: kyverno-policies looks up the version of a Deployment unless
// kyvernoVersion is set.
func TestAValueReplacesALookup(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"values.yaml": "kyvernoVersion: autodetect\n",
		"templates/_helpers.tpl": `{{- define "version" -}}
{{- $version := "" -}}
{{- if eq .Values.kyvernoVersion "autodetect" }}
{{- with (lookup "apps/v1" "Deployment" .Release.Namespace "kyverno") -}}
  {{- with (first .spec.template.spec.containers) -}}{{- $version = trimPrefix "v" (last (splitList ":" .image)) -}}{{- end -}}
{{- end -}}
{{ $version }}
{{- else -}}
{{ .Values.kyvernoVersion }}
{{- end -}}
{{- end -}}`,
		"templates/a.yaml": tillSettings + "data: {version: {{ include \"version\" . | default .Chart.AppVersion | quote }}}\n",
	}
	charts := chartCases{charts: newChartServer(t)}
	for reconciler, isRefused := range map[string]bool{"flux": true, "argocd": false} {
		if _, messages := charts.preview(t, reconciler, files, nil); strings.Contains(messages, "as it uses the function lookup") != isRefused {
			t.Errorf("%s: with the defaults of the chart, a preview says %s", reconciler, messages)
		}
		version := map[string]any{"values": map[string]any{"kyvernoVersion": "v1.15.0"}}
		if got, messages := charts.preview(t, reconciler, files, version); strings.Join(got, " ") != "till" {
			t.Errorf("%s: with kyvernoVersion, got %q; messages: %s", reconciler, got, messages)
		}
		if messages := charts.plan(t, reconciler, files, version); strings.Contains(messages, cannotBeRendered) {
			t.Errorf("%s: with kyvernoVersion, a plan with objects says %s", reconciler, messages)
		}
	}
}

func TestHooksThatNoAgentRunsAreLeftOut(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for name, annotations := range map[string]string{
		"before": "helm.sh/hook: pre-install", "upgraded": "helm.sh/hook: pre-upgrade", "tested": "helm.sh/hook: test",
		"back": "helm.sh/hook: pre-rollback",
		"gone": "helm.sh/hook: post-delete", "skipped": "argocd.argoproj.io/hook: Skip",
	} {
		files["templates/"+name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\n"
	}
	ofRelease := func(fields map[string]any) map[string]any { return map[string]any{"helm_release": fields} }
	disabled := map[string]any{"disableHooks": true}
	charts := chartCases{charts: newChartServer(t)}
	for _, test := range []struct {
		reconciler string
		parameters map[string]any
		want       string
	}{
		{"flux", nil, "back before gone skipped upgraded"},
		{"flux", ofRelease(map[string]any{"test": map[string]any{"enable": true}}), "back before gone skipped tested upgraded"},
		{"flux", ofRelease(map[string]any{"install": disabled, "rollback": disabled}), "gone skipped upgraded"},
		{"argocd", nil, "before gone upgraded"},
	} {
		if got, messages := charts.preview(t, test.reconciler, files, test.parameters); strings.Join(got, " ") != test.want {
			t.Errorf("%s with %v: got %q, want %s; messages: %s", test.reconciler, test.parameters, got, test.want, messages)
		}
	}
}

// A schema may refer to a schema on the web, as in the chart app-template.
func TestAnUnreadableSchemaIsAWarning(t *testing.T) {
	t.Parallel()
	const summary, address = "Values of charts are not checked", "https://schemas.example.com/till.json"
	remote := map[string]string{"templates/a.yaml": tillSettings, "values.schema.json": `{"$ref": "` + address + `"}`}
	requiring := func(address string) map[string]string {
		schema := `{"required": ["name"], "properties": {"a": {"$ref": "` + address + `"}}}`
		return map[string]string{"templates/a.yaml": tillSettings, "values.schema.json": schema}
	}
	part, wrong := requiring(address+"#/definitions/a"), requiring(address)
	both := map[string]any{"disableSchemaValidation": true}
	ofFlux := map[string]any{"helm_release": map[string]any{"install": both, "upgrade": both}}
	onInstall := map[string]any{"helm_release": map[string]any{"install": both}}
	ofArgoCD := map[string]any{"application": map[string]any{"source": map[string]any{"helm": map[string]any{"skipSchemaValidation": true}}}}
	charts := chartCases{charts: newChartServer(t)}
	for _, test := range []struct {
		reconciler string
		files      map[string]string
		parameters map[string]any
		want       string // expected message; "" for none
	}{
		{"flux", remote, nil, summary}, {"argocd", remote, nil, summary}, {"flux", part, nil, summary},
		{"flux", wrong, nil, "missing property 'name'"}, {"flux", wrong, onInstall, "missing property 'name'"},
		{"argocd", wrong, nil, "missing property 'name'"},
		{"flux", wrong, ofFlux, ""}, {"argocd", wrong, ofArgoCD, ""}, {"flux", remote, ofFlux, ""}, {"argocd", remote, ofArgoCD, ""},
	} {
		messages := charts.plan(t, test.reconciler, test.files, test.parameters)
		isRendered := !strings.Contains(messages, cannotBeRendered)
		if !strings.Contains(messages, test.want) || test.want == "" && (strings.Contains(messages, summary) || !isRendered) {
			t.Errorf("%s with %v: got %s, want %q", test.reconciler, test.parameters, messages, test.want)
		}
		if test.want == summary && (!strings.Contains(messages, address) || !strings.Contains(messages, `: 1 chart ("till")`) || !isRendered) {
			t.Errorf("%s: got %s", test.reconciler, messages)
		}
	}
}

// Agents find dependencies in other folders of the same commit.
func TestDependenciesOfTheSameCommitAreAdded(t *testing.T) {
	t.Parallel()
	const chartFile = "apiVersion: v2\nname: %s\nversion: 1.2.0\n"
	object := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }
	chartsWith := func(dependency string, further map[string]string) map[string]string {
		files := map[string]string{
			"live/Chart.yaml":              fmt.Sprintf(chartFile, "live") + "dependencies: [" + dependency + "]\n",
			"live/templates/all.yaml":      object("live"),
			"base/Chart.yaml":              fmt.Sprintf(chartFile, "base"),
			"base/templates/all.yaml":      object("base"),
			"base/values.yaml":             "",
			"base/templates/ignored.yaml":  object("ignored"),
			"base/.helmignore":             "templates/ignored.yaml\n",
			"library/Chart.yaml":           fmt.Sprintf(chartFile, "library") + "type: library\n",
			"library/templates/_names.tpl": `{{ define "name" }}named{{ end }}`,
		}
		maps.Copy(files, further)
		return files
	}
	named := map[string]string{ // expressions in a Secret count as values
		"live/Chart.yaml": fmt.Sprintf(chartFile, "storefront") + "dependencies: [{name: storefront-api, version: 1.x, repository: \"file://../storefront-api\"}]\n",
		"live/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ include \"storefront-api.fullname\" . }}\n" +
			"data:\n  chart: {{ include \"storefront.fullname\" . }}\n",
	}
	disabled := map[string]string{"live/values.yaml": "base: {enabled: false}\n"}
	including := map[string]string{"live/templates/all.yaml": object(`{{ include "name" . }}`)}
	for _, test := range []struct {
		files map[string]string
		path  string
		want  string // names, or the error
	}{
		{chartsWith(`{name: base, version: 1.x, repository: "file://../base"}`, nil), "live", "base live"},
		{chartsWith(`{name: base, version: 1.x, repository: "file://../base", condition: base.enabled}`, disabled), "live", "live"},
		{chartsWith(`{name: base, version: 1.x, alias: other, repository: "file://../base"}`, nil), "live", "base live"},
		{chartsWith(`{name: library, version: ">=1", repository: "file://../library"}`, including), "live", "named"},
		{chartsWith(`{name: base, version: 2.x, repository: "file://../base"}`, nil), "live",
			`chart "live" depends on version "2.x" of base, and the one at file://../base has "1.2.0"`},
		{chartsWith(`{name: base, version: 1.x, repository: "file://../gone"}`, nil), "live",
			`chart "live" depends on base at file://../gone, where there is no chart`},
		{chartsWith(`{name: base, version: 1.x, repository: "file://../../base"}`, nil), "live",
			`at file://../../base, which is outside of the artifact`},
		{chartsWith(`{name: base, version: 1.x, repository: "file:///base"}`, nil), "live",
			`at file:///base, which is outside of the artifact`},
		{chartsWith(`{name: base, version: 1.x, repository: "https://charts.example.com"}`, nil), "live",
			`depends on base, which its folder charts does not have`},
		{chartsWith("", named), "live", `chart "storefront" depends on storefront-api at file://../storefront-api, where there is no chart`},
		{chartsWith("", nil), "library", `chart "library" is a library, which reconcilers do not install`},
	} {
		repo, commit := serveRepository(t, test.files)
		manifests := map[string]any{"repo": repo, "commit": commit, "path": test.path, "type": "helm"}
		for _, reconciler := range []string{"flux", "argocd"} {
			fleet := renderedFleet(folder.Pin{}, manifests, nil, map[string]any{"reconciler": reconciler, "render": "preview"})
			if names, messages := finalObjectNames(t, fleet); strings.Join(names, " ") != test.want && !strings.Contains(messages, test.want) {
				t.Errorf("%s: got %q, want %q; messages: %s", reconciler, names, test.want, messages)
			}
		}
	}
}

// Argo CD runs `kustomize build`, which is stricter than Flux.
func TestArgoCDBuildsARootKustomizationStrictly(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\n"
	for name, test := range map[string]struct {
		files        map[string]string
		argocd, flux string // names, or the error
	}{
		"an unknown field": {
			map[string]string{"live/kustomization.yaml": "resources: [till.yaml]\nnamePrefixx: a-\n", "live/till.yaml": object},
			`unknown field "namePrefixx"`, "till",
		},
		"a link out of the folder": {
			map[string]string{"live/kustomization.yaml": "resources: [till.yaml]\n", "live/till.yaml": "-> ../shared/till.yaml", "shared/till.yaml": object},
			"'/live/till.yaml' is not in or below '/live'", "Flux leaves links out",
		},
		"a link within the folder": {
			map[string]string{"live/kustomization.yaml": "resources: [till.yaml]\n", "live/till.yaml": "-> other.yaml", "live/other.yaml": object},
			"till", "Flux leaves links out",
		},
		"a linked base": {
			map[string]string{"live/kustomization.yaml": "resources: [base]\n", "live/base": "-> ../shared", "shared/kustomization.yaml": "resources: [till.yaml]\n", "shared/till.yaml": object},
			"till", "which does not exist in the artifact",
		},
		"no resources": {map[string]string{"live/kustomization.yaml": "resources: []\n"}, "", ""},
		"the label of kustomize": {map[string]string{
			"live/kustomization.yaml": "resources: [till.yaml]\nbuildMetadata: [managedByLabel]\n", "live/till.yaml": object,
		}, "till", "till"},
	} {
		repo, commit := serveRepository(t, test.files)
		for reconciler, want := range map[string]string{"argocd": test.argocd, "flux": test.flux} {
			manifests := map[string]any{"repo": repo, "commit": commit, "path": "live"}
			fleet := renderedFleet(folder.Pin{}, manifests, nil, map[string]any{"reconciler": reconciler, "render": "preview"})
			names, messages := finalObjectNames(t, mergeMaps(fleet, map[string]any{"config_containers": []any{}}))
			isError := strings.Contains(messages, cannotBeRendered)
			if strings.Join(names, " ") != want && (want == "" || !strings.Contains(messages, want)) || want == "" && isError {
				t.Errorf("%s, %s: got %q, want %q; messages: %s", reconciler, name, names, want, messages)
			}
			const label = "app.kubernetes.io/managed-by: kustomize-v5.8.1"
			if all, _, _ := readFinalObjects(t, fleet); strings.HasPrefix(name, "the label") && !strings.Contains(fmt.Sprint(all), label) {
				t.Errorf("%s, %s: got %s", reconciler, name, all)
			}
		}
	}
}

// Helm stores the release in a Secret of 1 MiB at most. It must have each object once, and no CustomResourceDefinition.
func TestTheReleaseOfALargeChartStaysSmall(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewSource(7))
	text := func(words int) string {
		var b strings.Builder
		for range words {
			fmt.Fprintf(&b, "%d ", source.Int31()) // digits, because letters can look like credentials, which costs time
		}
		return b.String()
	}
	files := map[string]string{"templates/a.yaml": tillSettings}
	for i := range 3 {
		kind := fmt.Sprintf("kind%d", i)
		files["crds/"+kind+".yaml"] = strings.ReplaceAll("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"+
			"metadata: {name: KIND.example.com}\nspec:\n  group: example.com\n  names: {kind: KIND, plural: KIND}\n  scope: Namespaced\n"+
			"  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n"+
			"        description: 'has `automountServiceAccountToken: true`, "+text(60_000)+"'\n", "KIND", kind)
	}
	charts := chartCases{charts: newChartServer(t)}
	for _, reconciler := range []string{"flux", "argocd"}[:acceptancetest.Count(1, 2)] {
		if err := charts.plan(t, reconciler, files, nil); strings.Contains(err, cannotBeRendered) {
			t.Errorf("%s: got %.2000s", reconciler, err)
		}
	}
	large := map[string]string{}
	for i := range 4 {
		name := fmt.Sprintf("a%d", i)
		large["templates/"+name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: '" + text(45_000) + "'}\n"
	}
	if err := charts.plan(t, "argocd", large, nil); strings.Contains(err, cannotBeRendered) {
		t.Errorf("Argo CD: got %.2000s", err)
	}
	if err := charts.plan(t, "flux", large, nil); !strings.Contains(err, "its final objects make a release of ") {
		t.Errorf("Flux: got %.2000s", err)
	}
	pin := charts.charts.publish(t, "2.0.0", large)
	manifests := map[string]any{"storage": "helm", "repo": charts.charts.url, "chart": "till", "version": "2.0.0"}
	for _, reconciler := range []string{"flux", "argocd"}[:acceptancetest.Count(1, 2)] {
		isRefused := reconciler == "flux"
		fleet := fleetOf(renderedFleet(pin, manifests, nil, map[string]any{"render": "preview", "reconciler": reconciler}))
		_, preview := providertest.New(startProvider).
			ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{"fleet": fleet})
		_, plan := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleet, nil))
		for operation, err := range map[string]error{"flotilla_manifests": preview.Err(), "the plan": plan.Err()} {
			if text := strings.Join(strings.Fields(fmt.Sprint(err)), " "); strings.Contains(text, "objects make a release of ") != isRefused {
				t.Errorf("preview for %s: %s says %.1000s", reconciler, operation, text)
			}
		}
	}
}

// TestChartsOfOthersAreCommitted previews and plans each chart in helm/ below the folders of FLOTILLA_CHARTS, for each agent, with the
// values in values/<chart>.yaml. It counts refused charts by cause. refused.json has the highest allowed counts.
func TestChartsOfOthersAreCommitted(t *testing.T) {
	t.Parallel()
	causes := []struct{ cause, text string }{
		{"chance, clock or cluster", "as it uses the function"}, {"on install and on upgrade", "not the same on install and on upgrade"},
		{"credentials", "looks like a credential"},
		{"Secrets", "would be in the GitOps repository as plain text"},
		{"large releases", "its final objects make a release of"}, {"values that are wrong", "values.schema.json"},
		{"values that a chart refuses", "execut"},
		{"dependencies", "which its folder charts does not have"},
	}
	for _, folder := range filepath.SplitList(os.Getenv("FLOTILLA_CHARTS")) {
		refused := map[string]int{}
		found, err := filepath.Glob(filepath.Join(folder, "helm", "*", "Chart.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("found %d charts: %v", len(found), err)
		}
		charts := newChartServer(t)
		for i, file := range found {
			files := objectstest.Folder(t, filepath.Dir(file))
			name := filepath.Base(filepath.Dir(file))
			if files["Chart.yaml"] == "" || strings.Contains(files["Chart.yaml"], "type: library") {
				continue
			}
			values := map[string]any{}
			if text, err := os.ReadFile(filepath.Join(folder, "values", name+".yaml")); err == nil {
				if err := yaml.Unmarshal(text, &values); err != nil {
					t.Fatal(err)
				}
			}
			version := fmt.Sprintf("1.%d.0", i)
			files["Chart.yaml"] = regexp.MustCompile(`(?m)^version:.*$`).ReplaceAllString(files["Chart.yaml"], "version: "+version)
			pin := charts.publish(t, version, files)
			for _, reconciler := range []string{"flux", "argocd"} {
				for render, outcome := range map[string]string{"preview": "previewed", "objects": "committed"} {
					fleet := renderedFleet(pin, tillManifests(charts), map[string]any{"config_as": []any{"values"}}, map[string]any{
						"reconciler": reconciler, "render": render, "kubernetes_version": "1.34", "api_versions": []any{"monitoring.coreos.com/v1"},
					})
					fleet["config_containers"] = []any{map[string]any{"name": "all", "data": values}}
					_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
					messages := strings.Join(strings.Fields(fmt.Sprint(diags.Err())), " ")
					if diags.Err() == nil {
						refused[reconciler+": "+outcome]++
						continue
					}
					cause := ""
					for _, one := range causes {
						if strings.Contains(messages, one.text) && cause == "" {
							cause = one.cause
						}
					}
					refused[reconciler+": "+outcome+" without "+cause]++
					t.Logf("%s, %s, %s: %s: %.500s", name, reconciler, render, cause, messages)
				}
			}
		}
		known := map[string]int{}
		if text, err := os.ReadFile(filepath.Join(folder, "refused.json")); err == nil && json.Unmarshal(text, &known) != nil {
			t.Fatal("refused.json is not JSON")
		}
		for _, cause := range slices.Sorted(maps.Keys(refused)) {
			if t.Logf("%s: %d", cause, refused[cause]); strings.Contains(cause, " without ") && refused[cause] > known[cause] {
				t.Errorf("%s: got %d refused charts, want at most %d", cause, refused[cause], known[cause])
			}
		}
	}
}
