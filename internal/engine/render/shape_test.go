package render_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

const repositoryObject = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: x\n"

// Manifests of templates of type config.
var (
	withShape = []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: {{ .Namespace}}\ndata:\n{{ toYaml .ConfigData | indent 2}}",
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: \"{{ .DeploymentTargetName }}\"\n  namespace: \"{{ .Namespace }}\"\n  labels: {a: b}\n",
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: {{ .Name }}\n  namespace: {{ .Namespace }}\n  labels:\n    host: {{ .HostLabel }}\n",
		repositoryObject + "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: {{ .Namespace }}\n",
		repositoryObject + "  labels:\n    a: x{{ .Namespace }}x\n", repositoryObject + "  labels:\n    {{ .Namespace }}: x\n    n1: x\n",
		repositoryObject + "  labels:\n    a: 0{{ .Namespace }}\n", repositoryObject + "  labels:\n    a: {{ .Namespace }}2x\n", repositoryObject + "  labels:\n    a: |\n      {{ .Namespace }}\n",
		repositoryObject + "  labels:\n    a: {{ .HostLabel }}\n", repositoryObject + "  labels:\n    a: {{ .ConfigData.a }}\n", "a: {{ .Namespace }}\n", "- {{ .Namespace }}\n",
		repositoryObject + "  labels:\n    a: {{ if .Manifests.parameters }}x{{ else }}y{{ end }}\n", repositoryObject + "spec: {{ .Namespace }}\n# {{ .Namespace }}\n",
		"apiVersion: v1\nkind: {{ .Namespace }}\nmetadata:\n  name: x\n---\napiVersion: v1\nkind: n1\nmetadata:\n  name: x\n", repositoryObject + "  namespace: {{ .Workload }}\n", "",
		repositoryObject + "  labels:\n    secret: {{ .Namespace }}\n", repositoryObject + "spec: {name: {{ .Namespace }}, value: a1b2}\n",
		repositoryObject + "spec: [--password, {{ .Namespace }}]\n", repositoryObject + "  labels:\n    token: {{ .ConfigData.a }}1a\n",
	}
	withoutShape = []string{
		repositoryObject + "  namespace: {{ .Namespace | upper }}\n", repositoryObject + "  namespace: {{ if hasPrefix \"n\" .Namespace }}a{{ else }}b{{ end }}\n",
		repositoryObject + "  namespace: {{ $n := .Namespace }}{{ $n }}\n", repositoryObject + "  namespace: {{ with .Namespace }}{{ . }}{{ end }}\n",
		repositoryObject + "  labels:\n    a: {{ .HostLabels.number }}\n", repositoryObject + "  labels:\n    a: {{ $.HostLabels.number }}\n",
		repositoryObject + "  namespace: {{ tpl \"{{ .Namespace }}\" . }}\n", repositoryObject + "  namespace: {{ (index . \"Namespace\") }}\n",
		"{{ define \"n\" }}{{ .Namespace }}{{ end }}" + repositoryObject + "  namespace: {{ template \"n\" . }}\n",
		"{{ set .Labels \"a\" .Namespace | toJson | len }}", "{{ range list . }}{{ .Namespace }}{{ end }}", "{{ (dict \"a\" .).a.Namespace }}", repositoryObject + "  namespace: {{ print .Namespace }}\n",
	}
)

func TestOnlyTemplatesWithUnchangedNamesHaveShapes(t *testing.T) {
	t.Parallel()
	for _, manifest := range withShape {
		if !render.HasShape("config", manifest) {
			t.Errorf("has no shape:\n%s", manifest)
		}
	}
	for _, manifest := range withoutShape {
		if render.HasShape("config", manifest) {
			t.Errorf("has a shape:\n%s", manifest)
		}
	}
	if render.HasShape("namespace", withShape[0]) {
		t.Error("a template of another type than config has a shape that depends on the configuration")
	}
}

// FuzzShapes renders and checks folders with custom templates. Files, findings and objects must be the same as with templates
// without shapes, the full check and the full YAML reader.
func FuzzShapes(f *testing.F) {
	for _, manifest := range append(withShape, withoutShape...) {
		for seed := range uint64(acceptancetest.Count(1, 3)) {
			f.Add(manifest, seed)
		}
	}
	f.Fuzz(func(t *testing.T, manifest string, seed uint64) {
		for _, kinds := range [][2]string{{"config", "namespace"}, {"namespace", "config"}} {
			d := deployment{configType: "own", namespaceService: "own", requires: []fleet.Workload{{
				Name: "database", Workspace: "kaizen", DeploymentTargets: []fleet.DeploymentTarget{{Name: "dev", Manifests: fromGit()}},
			}}}
			d.templates = []fleet.Template{
				{Type: kinds[0], Name: "own", Manifests: []string{manifest}},
				{Type: kinds[1], Name: "own", Manifests: []string{strings.Replace(repositoryObject, "name: x", "name: n1", 1)}},
				{Type: "reconciler", Name: "own", Manifests: []string{"{{/* nothing */}}"}},
			}
			compareShapes(t, d, manifest, rand.New(rand.NewPCG(seed, 0)))
		}
	})
}

func compareShapes(t *testing.T, d deployment, manifest string, random *rand.Rand) {
	t.Helper()
	f := d.fleet()
	f.ClusterTypes = append(f.ClusterTypes, f.ClusterTypes[0], f.ClusterTypes[0])
	f.ClusterTypes[1].Name, f.ClusterTypes[1].Reconciler = "other", "own"
	f.ClusterTypes[2].Name, f.ClusterTypes[2].Reconciler, f.ClusterTypes[2].Parameters = "third", "own", map[string]any{"a": "b"}
	f.Workloads[0].DeploymentTargets = append(f.Workloads[0].DeploymentTargets, f.Workloads[0].DeploymentTargets[0])
	f.Workloads[0].DeploymentTargets[1].Name = "test"
	shared, findings := render.Compile(f)
	if len(findings) > 0 {
		return
	}
	alone, _ := render.Compile(f)
	for range acceptancetest.Count(10, 24) {
		namespace := []string{"n1", "n1", "n2", "x", "123", "null", "1e3", "n3", "db-password", strings.Repeat("n", 63)}[random.IntN(10)]
		config := []string{"b", "1"}[random.IntN(2)]
		hello, clusterType := &f.Workloads[0], &f.ClusterTypes[random.IntN(3)]
		target := &hello.DeploymentTargets[random.IntN(2)]
		subject := d.subject(f)
		subject.Assignment.Namespace = namespace
		subject.Assignment.Host = &schedule.Host{Name: "h-" + namespace, ClusterType: clusterType, Labels: fleet.Labels{"number": namespace}}
		subject.Assignment.Target = &schedule.Target{Name: fleet.FullName(hello.Name, target.Name), Workload: hello, Target: target}
		subject.Config, subject.ConfigVersion = map[string]any{"a": config}, config
		render.ForgetShapes(alone)
		want, wrong := alone.Render(subject)
		got, err := shared.Render(subject)
		if got, want := contents(got, err), contents(want, wrong); !reflect.DeepEqual(got, want) {
			t.Fatalf("namespace %q, cluster type %q\n%s\ngot  %q\nwant %q", namespace, clusterType.Name, manifest, got, want)
		}
		if err != nil {
			continue
		}
		if got, want := shared.Check(subject, got), render.FullCheck(alone, subject, want...); !reflect.DeepEqual(got, want) {
			t.Fatalf("namespace %q, cluster type %q\n%s\ngot  %v\nwant %v", namespace, clusterType.Name, manifest, got, want)
		}
		if got, want := shared.Objects(subject, got), alone.Objects(subject, want); !reflect.DeepEqual(got, want) {
			t.Fatalf("namespace %q, cluster type %q\n%s\ngot  %v\nwant %v", namespace, clusterType.Name, manifest, got, want)
		}
	}
}

// contents returns the names and contents of files, or the error.
func contents(files []render.AssignmentFile, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	var contents []string
	for _, file := range files {
		contents = append(contents, file.Name, string(file.Content))
	}
	return contents
}
