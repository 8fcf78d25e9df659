package renderer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
)

// fuzzRenderer renders one artifact after another in one worker.
type fuzzRenderer struct {
	pool    *renderer.Pool
	archive *objectstest.Archives
	number  int
}

func newFuzzRenderer(f *testing.F) *fuzzRenderer {
	f.Helper()
	all := &fuzzRenderer{}
	all.pool = renderer.NewPool(all, renderer.PoolOptions{Time: 5 * time.Second, Memory: 256 << 20, Workers: renderer.NewWorkers(1)})
	f.Cleanup(all.pool.Close)
	return all
}

// Keys implements artifact.Fetcher.
func (f *fuzzRenderer) Keys(artifact.Artifact) (string, error) { return "", nil }

// Fetch implements artifact.Fetcher.
func (f *fuzzRenderer) Fetch(ctx context.Context, source artifact.Artifact) (string, error) {
	return f.archive.Fetch(ctx, source)
}

// render checks that the worker does not panic, that an error names the repository, and that all objects are complete.
func (f *fuzzRenderer) render(t *testing.T, files map[string]string, request *objects.Request) {
	t.Helper()
	f.archive = objectstest.NewArchives(t)
	f.number++
	source := shop
	source.Pin.Commit = fmt.Sprintf("%040x", f.number)
	request.Artifact = f.archive.Add(source, files)
	result, err := f.pool.Render(t.Context(), request)
	if err != nil {
		message := err.Error()
		if strings.Contains(message, "ended the process that renders (status 2)") {
			t.Errorf("a worker panics: %s", message)
		}
		if !utf8.ValidString(message) || !strings.Contains(message, shop.Repo) {
			t.Errorf("got error %q", message)
		}
		return
	}
	for _, o := range result.Objects {
		if o.Kind == "" || o.Version == "" || o.Name == "" || !utf8.Valid(o.YAML) {
			t.Errorf("got object %+v", o)
		}
	}
}

func FuzzCharts(f *testing.F) {
	f.Add("apiVersion: v2\nname: till\nversion: 1.0.0\n", "a: 1\n", settings+"b: {{ .Values.a | quote }}\n", `{"type": "object"}`, "a=1")
	f.Add("apiVersion: v1\nname: till\nversion: 1.0.0\ndependencies: [{name: a, version: 1, condition: a.b, tags: [c], import-values: [d]}]\n", "a: {b: true}\n", "{{ include `a` . }}", `{"$ref": "#"}`, "a[0].b={1,2}")
	f.Add("name: till\nversion: v1\nkubeVersion: '>1'\ntype: library\n", "[]", "{{ lookup `a` `b` `c` `d` }}", `{"properties": {"a": {"pattern": "("}}}`, "a.b\\.c=null")
	all := newFuzzRenderer(f)
	f.Fuzz(func(t *testing.T, metadata, values, template, schema, parameter string) {
		path, value, _ := strings.Cut(parameter, "=")
		files := map[string]string{
			"chart/Chart.yaml": metadata, "chart/values.yaml": values, "chart/values.schema.json": schema, "chart/templates/a.yaml": template,
			"chart/charts/a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n", "chart/crds/a.yaml": values, "chart/.helmignore": parameter,
		}
		all.render(t, files, &objects.Request{Path: "chart", Helm: &objects.Helm{
			ReleaseName: "eu", ValueFiles: []string{"values.yaml"}, Parameters: []objects.Parameter{{Name: path, Value: value}},
		}})
	})
}

func FuzzKustomizations(f *testing.F) {
	f.Add("resources: [a.yaml]\nnamePrefix: b-\nimages: [{name: a, newTag: b}]\n", settings, "A", "b")
	f.Add("resources: [../base]\npatches: [{path: a.yaml}]\nconfigMapGenerator: [{name: a, files: [a.yaml], literals: [a=b]}]\nreplacements: [{path: a.yaml}]\n", settings, "", "${A:-b}")
	f.Add("generators: [a.yaml]\ncomponents: [../base]\nvars: [{name: A, objref: {kind: ConfigMap, name: settings, apiVersion: v1}}]\n", "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: a}\n", "a", "")
	all := newFuzzRenderer(f)
	f.Fuzz(func(t *testing.T, kustomization, resource, name, value string) {
		files := map[string]string{"apps/kustomization.yaml": kustomization, "apps/a.yaml": resource, "base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": settings, "apps/b.yaml": "-> ../" + strings.ReplaceAll(name, "\x00", "")}
		all.render(t, files, &objects.Request{Path: "apps", Substitute: map[string]string{name: value}, Kustomize: &objects.Kustomize{Generate: true}})
	})
}

func FuzzManifests(f *testing.F) {
	f.Add(settings, `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}]}`, "*.yaml", "b.*", "a.yaml")
	f.Add("---\n{}\n--- # b\nkind: [a]\n", "[", "{a,b}", "[!c]", "/etc")
	all := newFuzzRenderer(f)
	f.Fuzz(func(t *testing.T, yaml, json, include, exclude, target string) {
		files := map[string]string{"apps/a.yaml": yaml, "apps/b.json": json, "apps/below/c.yml": yaml, "apps/d.yaml": "-> " + strings.ReplaceAll(target, "\x00", "")}
		all.render(t, files, &objects.Request{Path: "apps", Directory: &objects.Directory{Recurse: true, Include: include, Exclude: exclude}})
	})
}

func FuzzSourceIgnore(f *testing.F) {
	f.Add("kustomization.yaml\n", "!kustomization.yaml", "a.yaml")
	f.Add("/apps/**\n# a\n", "\\!a\n**/b/", "../kustomization.yaml")
	f.Add("[", "*.[a-\n!", "/etc")
	all := newFuzzRenderer(f)
	f.Fuzz(func(t *testing.T, outer, inner, target string) {
		files := map[string]string{
			".sourceignore": outer, "apps/.sourceignore": inner, "apps/a.yaml": settings, "apps/b/c.yaml": settings,
			"apps/kustomization.yaml": "-> " + strings.ReplaceAll(target, "\x00", ""),
		}
		all.render(t, files, &objects.Request{Path: "apps", Source: &objects.FluxSource{Ignore: inner}, Kustomize: &objects.Kustomize{Generate: true}})
	})
}
