package provider_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// previewTargets collects deployment targets of one workload, with manifests and pins.
type previewTargets struct {
	charts  *chartServer
	targets map[string]any
	pins    artifact.Resolved
}

// addChart adds a deployment target with its own version of the chart.
func (p *previewTargets) addChart(t *testing.T, name string, files map[string]string) {
	t.Helper()
	version := fmt.Sprintf("1.0.%d", len(p.targets))
	manifests := folder.Manifests{Storage: "helm", Repo: p.charts.url, Chart: "till", Version: version}
	p.pins["till-"+name] = artifact.Entry{Manifests: manifests, Pin: p.charts.publish(t, version, files)}
	p.targets[name] = map[string]any{
		"environment": "dev",
		"manifests":   map[string]any{"storage": "helm", "repo": p.charts.url, "chart": "till", "version": version},
	}
}

// fleet places the deployment targets on a number of cluster types.
func (p *previewTargets) fleet(t *testing.T, clusterTypes int) map[string]any {
	t.Helper()
	pins, err := p.pins.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var types []any
	for i := range clusterTypes {
		types = append(types, map[string]any{"name": fmt.Sprintf("store%d", i), "render": "preview"})
	}
	return map[string]any{
		"cluster_types": types, "artifacts": pins,
		"workloads":       []any{map[string]any{"name": "till", "workspace": "team", "deployment_targets": p.targets}},
		"target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
	}
}

// planMessages plans a fleet and returns the messages. The plan must write nothing.
func planMessages(t *testing.T, fleet map[string]any) string {
	t.Helper()
	url := bare(t)
	_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(url, fleetOf(fleet), nil))
	if _, err := os.Stat(url); err == nil {
		t.Error("something was written")
	}
	return strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
}

// The plan ends, and names each hostile chart and folder.
func TestHostileInputFailsThePlan(t *testing.T) {
	t.Parallel()
	p := &previewTargets{charts: newChartServer(t), targets: map[string]any{}, pins: artifact.Resolved{}}
	want := map[string]string{}
	template := func(text string) map[string]string { return map[string]string{"templates/all.yaml": text} }
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"allocates": {template(`{{ repeat 2000000000 "x" | len }}`), "it needs more than 512 MiB of memory to render"},
		"itself":    {template(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), "rendering template has a nested reference name: a"},
		"large":     {template("{{ fail `it is read` }}" + strings.Repeat("# x\n", 10<<18)), `file "templates/all.yaml" has more than 5 MiB`},
		"writes":    {template("{{ range 20 }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-{{ . }}}\ndata: {text: {{ repeat 1000000 \"x\" }}}\n---\n{{ end }}"), "it renders more than 16 MiB"},
		"asks":      {template("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {at: \"{{ getHostByName `example.com` }}\"}"), "template till/templates/all.yaml renders something else each time, as it uses the function getHostByName"},
		"reads":     {template(`{{ env "HOME" }}`), `till/templates/all.yaml:1): function "env" not defined`},
		"talks":     {template("{{ fail \"\\x1b[2J\\xff done\" }}"), "till/templates/all.yaml:1"},
		"bomb":      {map[string]string{"zeros": strings.Repeat("\x00", 130<<20)}, "it has more than 128 MiB when unpacked"},
		"leads":     {map[string]string{"templates/all.yaml": "-> ../../../../etc/passwd"}, `symbolic link "till/templates/all.yaml" to "../../../../etc/passwd", which leads out of it`},
	} {
		p.addChart(t, name, test.files)
		origin := fmt.Sprintf(`"till-%s": chart till %s of %s: `, name, p.pins["till-"+name].Pin.Version, p.charts.url)
		if name == "bomb" || name == "leads" {
			origin = fmt.Sprintf(`"till-%s": repository %q: the archive of chart "till" %s`, name, p.charts.url, p.pins["till-"+name].Pin.Version)
		}
		want[origin] = test.want
	}
	repo, commit := serveRepository(t, map[string]string{
		"remote/kustomization.yaml":    "resources: ['https://github.com/example/app//base?ref=v1']\n",
		"program/kustomization.yaml":   "generators: [a.yaml]\n",
		"program/a.yaml":               "apiVersion: a.example.com/v1\nkind: A\nmetadata: {name: a, annotations: {config.kubernetes.io/function: 'exec: {path: ./a.sh}'}}\n",
		"container/kustomization.yaml": "generators: [a.yaml]\n",
		"container/a.yaml":             "apiVersion: a.example.com/v1\nkind: A\nmetadata: {name: a, annotations: {config.kubernetes.io/function: 'container: {image: example.com/a}'}}\n",
		"inflates/kustomization.yaml":  "helmCharts: [{name: a, repo: 'https://example.com'}]\n",
		"outside/kustomization.yaml":   "configMapGenerator: [{name: a, files: [../../../../etc/passwd]}]\n",
		"link/kustomization.yaml":      "configMapGenerator: [{name: a, files: [a]}]\n",
		"link/a":                       "-> /etc/passwd",
	})
	for name, text := range map[string]string{
		"remote": "refers to https://github.com/example/app//base?ref=v1: rendering reads nothing from the network", "program": "plugin", "container": "plugin",
		"inflates": "has helmCharts, which are not rendered", "outside": "etc/passwd", "link": `symbolic link "link/a" leads out of the artifact, to "/etc/passwd"`,
	} {
		p.targets[name] = map[string]any{"environment": "dev", "manifests": map[string]any{"repo": repo, "commit": commit, "path": name}}
		want[fmt.Sprintf(`"till-%s": folder %q of %s at %s: `, name, name, repo, commit)] = text
	}
	p.addChart(t, "fine", template("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '{{ .Files.Get `../../etc/passwd` }}'}"))
	messages := planMessages(t, p.fleet(t, 1))
	for origin, text := range want {
		at := strings.Index(messages, origin)
		if at < 0 || !strings.Contains(messages[at:min(len(messages), at+2500)], text) {
			t.Errorf("%s: want %q, got %.500s", origin, text, messages[max(at, 0):])
		}
	}
	if len(messages) > 30_000 || strings.Contains(messages, "till-fine") || strings.ContainsRune(messages, '\x1b') || strings.Contains(messages, "root:") {
		t.Errorf("got %s", messages)
	}
}

// A looping chart costs its time limit once, not once for each host.
func TestALoopingChartFailsThePlan(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	p := &previewTargets{charts: newChartServer(t), targets: map[string]any{}, pins: artifact.Resolved{}}
	p.addChart(t, "loops", map[string]string{"templates/all.yaml": "{{ range 100000000000 }}{{ end }}"})
	p.addChart(t, "fails", map[string]string{"templates/all.yaml": "{{ fail `of itself` }}"})
	messages := planMessages(t, p.fleet(t, 20))
	for _, want := range []string{"1.0.0 of " + p.charts.url + ": it takes more than 30s to render", "it was not rendered, since with the values of another assignment it takes more than 30s to render", "of itself"} {
		if !strings.Contains(messages, want) {
			t.Errorf("got %s, want %q", messages, want)
		}
	}
}
