package renderer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
)

var shop = artifact.Artifact{Storage: "git", Repo: "https://git.example.com/shop", Pin: folder.Pin{Commit: "5ca1ab1e"}}

// renderFiles renders files, and returns each object with its identity and YAML, or the error.
func renderFiles(t *testing.T, files map[string]string, request objects.Request) string {
	t.Helper()
	archives := objectstest.NewArchives(t)
	request.Artifact = archives.Add(shop, files)
	return outcome(renderer.InProcess(archives).Render(t.Context(), &request))
}

func outcome(result *objects.Rendering, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, o := range result.Objects {
		fmt.Fprintf(&b, "# %s %s/%s %s %s/%s %s\n%s", o.From, o.Group, o.Version, o.Kind, o.Namespace, o.Name, o.Hook, o.YAML)
	}
	return b.String()
}

const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {greeting: hello}
`

func chart(templates map[string]string) map[string]string {
	files := map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: till\nversion: 1.0.0\n"}
	for name, text := range templates {
		files["chart/"+name] = text
	}
	return files
}

func TestAChartIsRendered(t *testing.T) {
	files := chart(map[string]string{
		"values.yaml":          "greeting: hello\nport: 80\nlarge: 12345678\n",
		"more.yaml":            "greeting: from a file\n",
		"crds/till.yaml":       "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Till}}\n",
		"templates/NOTES.txt":  "Hello",
		"templates/_names.tpl": `{{ define "name" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}`,
		"templates/all.yaml": `{{ if .Values.greeting }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ include "name" . }}, namespace: {{ .Release.Namespace }}}
data:
  greeting: {{ .Values.greeting }}
  port: {{ .Values.port | quote }}
  number: {{ .Values.number | quote }}
  large: {{ .Values.large | quote }}
  version: {{ .Capabilities.KubeVersion.Version }}
  monitored: {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" | quote }}
{{ end }}
---
apiVersion: example.com/v1
kind: Till
metadata: {name: one}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ServiceAccount
  metadata: {name: till}
`,
		"templates/tests/test.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: test\n  annotations: {helm.sh/hook: test}\n",
		"templates/hook.yaml":       "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: 'pre-install, pre-upgrade'}\n",
	})
	got := renderFiles(
		t,
		files,
		objects.Request{
			Path:              "chart",
			Namespace:         "shop",
			KubernetesVersion: "1.34",
			APIVersions:       []string{"monitoring.coreos.com/v1"},
			Helm: &objects.Helm{
				ReleaseName: "eu", Namespace: "shop", ValueFiles: []string{"more.yaml"}, Values: map[string]any{"port": 8080},
				Parameters: []objects.Parameter{
					{Name: "port", Value: "443"},
					{Name: "large", Value: "a,b", IsText: true},
					{Name: "number", Value: "12000000"},
				},
			},
		},
	)
	want := `# chart /v1 ConfigMap shop/eu-till 
apiVersion: v1
data:
  greeting: from a file
  large: a,b
  monitored: "true"
  number: "12000000"
  port: "443"
  version: v1.34
kind: ConfigMap
metadata:
  name: eu-till
  namespace: shop
# chart /v1 Pod shop/test test
apiVersion: v1
kind: Pod
metadata:
  annotations:
    helm.sh/hook: test
  name: test
# chart /v1 ServiceAccount shop/till 
apiVersion: v1
kind: ServiceAccount
metadata:
  name: till
# chart apiextensions.k8s.io/v1 CustomResourceDefinition /tills.example.com 
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: tills.example.com
spec:
  group: example.com
  names:
    kind: Till
  scope: Cluster
# chart batch/v1 Job shop/migrate pre-install,pre-upgrade
apiVersion: batch/v1
kind: Job
metadata:
  annotations:
    helm.sh/hook: pre-install, pre-upgrade
  name: migrate
# chart example.com/v1 Till /one 
apiVersion: example.com/v1
kind: Till
metadata:
  name: one
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAKustomizationIsBuilt(t *testing.T) {
	files := map[string]string{
		"base/kustomization.yaml": "resources: [settings.yaml]\n",
		"base/settings.yaml":      settings,
		"prod/kustomization.yaml": "resources: [../base, deployment.yaml]\nnamePrefix: p-\nimages: [{name: till, newTag: '1'}]\n",
		"prod/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: till}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec: {containers: [{name: till, image: "till:0"}]}
`,
	}
	got := renderFiles(
		t,
		files,
		objects.Request{Path: "prod", Namespace: "default", Substitute: map[string]string{"WORLD": "earth"}, Kustomize: &objects.Kustomize{
			NameSuffix: "-eu", Namespace: "shop", Images: []objects.Image{{Name: "till", NewName: "registry.example.com/till"}},
			Patches: []objects.Patch{
				{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {greeting: 'hello ${WORLD} ${MOON:=moon}'}\n"},
			},
			Replicas:     []objects.Replicas{{Name: "till", Count: 3}},
			Labels:       map[string]string{"team": "shop"},
			CommonLabels: map[string]string{"tier": "front"},
		}},
	)
	want := `# kustomization /v1 ConfigMap shop/p-settings-eu 
apiVersion: v1
data:
  greeting: hello earth moon
kind: ConfigMap
metadata:
  labels:
    team: shop
    tier: front
  name: p-settings-eu
  namespace: shop
# kustomization apps/v1 Deployment shop/p-till-eu 
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    team: shop
    tier: front
  name: p-till-eu
  namespace: shop
spec:
  replicas: 3
  selector:
    matchLabels:
      app: till
      tier: front
  template:
    metadata:
      labels:
        app: till
        tier: front
    spec:
      containers:
      - image: registry.example.com/till:1
        name: till
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAFolderWithoutAKustomizationIsBuiltAsByFlux(t *testing.T) {
	files := map[string]string{
		"apps/settings.yaml":          settings,
		"apps/notes.txt":              "no manifest",
		"apps/till/kustomization.yml": "resources: [../../shared/account.yaml]\n",
		"apps/till/left-out.yaml":     "kind: [",
		"shared/account.yaml":         "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: till}\n",
		"pages/a b/[id]+é@1.tsx":      "as repositories have it",
	}
	got := renderFiles(t, files, objects.Request{Path: "apps", Kustomize: &objects.Kustomize{Generate: true}})
	for _, want := range []string{"kind: ConfigMap", "kind: ServiceAccount"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestManifestsAreSelectedAsByArgoCD(t *testing.T) {
	object := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n", name)
	}
	files := map[string]string{
		"apps/a.yaml":       "# a comment alone\n---\n" + object("a") + "---\n" + object("a2"),
		"apps/b.json":       `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}`,
		"apps/skipped.yml":  "# +argocd:skip-file-rendering\n" + object("skipped"),
		"apps/values.yaml":  "replicas: 3\n",
		"apps/below/c.yaml": object("c"),
		"apps/below/d.yaml": object("d"),
		"apps/readme.md":    "no manifest",
	}
	for _, test := range []struct {
		name      string
		directory objects.Directory
		want      string
	}{
		{"one folder", objects.Directory{}, "a a2 b"},
		{"folders below", objects.Directory{Recurse: true}, "a a2 b c d"},
		{"an exclusion", objects.Directory{Recurse: true, Exclude: "{below/c.yaml,b.json}"}, "a a2 d"},
		{"an inclusion", objects.Directory{Recurse: true, Include: "*/*.yaml"}, "c d"},
	} {
		t.Run(test.name, func(t *testing.T) {
			archives := objectstest.NewArchives(t)
			request := objects.Request{Artifact: archives.Add(shop, files), Path: "apps", Directory: &test.directory}
			result, err := renderer.InProcess(archives).Render(t.Context(), &request)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, o := range result.Objects {
				names = append(names, o.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTheFolderDecidesTheForm(t *testing.T) {
	files := chart(map[string]string{"templates/all.yaml": settings, "crds/till.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tills.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Till}}
`})
	files["built/kustomization.yaml"] = "namePrefix: of-\nresources: [settings.yaml]\n"
	files["built/settings.yaml"] = settings
	files["plain/settings.yaml"] = settings
	for folder, want := range map[string]string{"chart": "# chart", "built": "# kustomization", "plain": "# manifest"} {
		request := objects.Request{
			Path:      folder,
			Helm:      &objects.Helm{ReleaseName: "a"},
			Kustomize: &objects.Kustomize{},
			Directory: &objects.Directory{},
		}
		if got := renderFiles(t, files, request); !strings.HasPrefix(got, want) {
			t.Errorf("%s: want %q, got\n%s", folder, want, got)
		}
	}
	labelled := &objects.Helm{ReleaseName: "a", After: &objects.Kustomize{Labels: map[string]string{"team": "kaizen"}}}
	if got := renderFiles(t, files, objects.Request{Path: "chart", Helm: labelled}); strings.Count(got, "team: kaizen") != 2 {
		t.Errorf("with labels, got\n%s", got)
	}
	archives := objectstest.NewArchives(t)
	result, err := renderer.InProcess(archives).
		Render(t.Context(), &objects.Request{Artifact: archives.Add(shop, files), Path: "chart", Helm: labelled})
	if err != nil || len(result.Objects) != 2 || result.Objects[0].IsCRD || !result.Objects[1].IsCRD {
		t.Errorf("got %+v, %v, want one object and one CRD", result, err)
	}
}
