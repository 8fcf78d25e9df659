package render_test

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// source has the origin and the destination of an assignment's manifests.
type source struct{ repository, revision, path, namespace string }

// valueAt reads a value of a YAML document by its path: "spec.source.path", "components.0.charts".
func valueAt(document any, place string) any {
	for _, step := range strings.Split(place, ".") {
		switch value := document.(type) {
		case map[string]any:
			document = value[step]
		case []any:
			if step != "0" || len(value) == 0 {
				return nil
			}
			document = value[0]
		default:
			return nil
		}
	}
	return document
}

// textAt returns the first value at one of the places.
func textAt(document any, places ...string) string {
	for _, place := range places {
		if value := valueAt(document, place); value != nil {
			return fmt.Sprint(value)
		}
	}
	return ""
}

func fluxSource(documents []any) source {
	origin, applied := documents[0], documents[1]
	repository := textAt(origin, "spec.url")
	if chart := textAt(applied, "spec.chart.spec.chart"); chart != "" && textAt(origin, "kind") == "HelmRepository" {
		repository += "/" + chart
	}
	place := textAt(applied, "spec.path")
	if textAt(origin, "kind") == "GitRepository" && place == "" {
		place = textAt(applied, "spec.chart.spec.chart")
	}
	return source{
		repository: repository,
		revision: cmp.Or(textAt(applied, "spec.chart.spec.version"),
			textAt(origin, "spec.ref.commit", "spec.ref.tag", "spec.ref.semver", "spec.ref.branch")),
		path:      place,
		namespace: textAt(applied, "spec.targetNamespace"),
	}
}

func argoSource(documents []any) source {
	application := documents[0]
	repository := textAt(application, "spec.source.repoURL")
	if chart := textAt(application, "spec.source.chart"); chart != "" {
		repository += "/" + chart
	}
	return source{
		repository, textAt(application, "spec.source.targetRevision"), textAt(application, "spec.source.path"),
		textAt(application, "spec.destination.namespace"),
	}
}

// hubSource reads the source from the template of an ApplicationSet.
func hubSource(documents []any) source {
	return argoSource([]any{valueAt(documents[0], "spec.template")})
}

func fleetSource(documents []any) source {
	resource := documents[0]
	repository := textAt(resource, "spec.repo", "spec.helm.repo")
	if chart := textAt(resource, "spec.helm.chart"); chart != "" {
		repository += "/" + chart
	}
	return source{
		repository, textAt(resource, "spec.revision", "spec.branch", "spec.helm.version"), textAt(resource, "spec.paths.0"),
		textAt(resource, "spec.targetNamespace", "spec.defaultNamespace"),
	}
}

func zarfSource(documents []any) source {
	component := valueAt(documents[0], "components.0")
	if kustomization := textAt(component, "manifests.0.kustomizations.0"); kustomization != "" {
		location, revision, _ := strings.Cut(kustomization, "?ref=")
		scheme, rest, _ := strings.Cut(location, "://")
		repository, place, _ := strings.Cut(rest, "//")
		return source{scheme + "://" + repository, revision, place, textAt(component, "manifests.0.namespace")}
	}
	repository := textAt(component, "charts.0.url")
	if git, _, ok := strings.Cut(repository, ".git@"); ok {
		repository = git
	}
	if chart := textAt(component, "charts.0.repoName"); chart != "" {
		repository += "/" + chart
	}
	return source{
		repository,
		textAt(component, "charts.0.version"),
		textAt(component, "charts.0.gitPath"),
		textAt(component, "charts.0.namespace"),
	}
}

func TestAllReconcilersGetTheSameSource(t *testing.T) {
	const namespace = "dev-drone-hello-dev"
	for name, example := range map[string]struct {
		manifests fleet.Manifests
		want      source
	}{
		"git, a branch":        {fromGit(), source{"https://git.example.com/hello", "dev", "deploy", namespace}},
		"git, a tag":           {gitTag, source{"https://git.example.com/hello", "v1.2.3", ".", namespace}},
		"git, defaults":        {fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/hello"}}, source{"https://git.example.com/hello", "main", ".", namespace}},
		"git, a commit":        {fleet.Manifests{Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/hello", Branch: "dev", Commit: "c0ffee", Path: "a/b"}}, source{"https://git.example.com/hello", "c0ffee", "a/b", namespace}},
		"git, a chart":         {gitChart, source{"ssh://git@git.example.com/hello", gitChart.Commit, "charts/hello", namespace}},
		"helm":                 {helmChart, source{"https://charts.example.com/podinfo", "6.7.x", ".", namespace}},
		"helm, any version":    {fleet.Manifests{Manifests: folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: "podinfo"}}, source{"https://charts.example.com/podinfo", "*", ".", namespace}},
		"helm from a registry": {fleet.Manifests{Manifests: folder.Manifests{Storage: "helm", Repo: "oci://registry.example.com/charts", Chart: "podinfo", Version: "1.2.3"}}, source{"oci://registry.example.com/charts/podinfo", "1.2.3", ".", namespace}},
		"oci, a chart":         {ociChart, source{"oci://registry.example.com/charts/podinfo", "6.7.x", ".", namespace}},
		"oci, a chart's URL":   {fleet.Manifests{Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/podinfo", Tag: "1.2.3"}, Type: "helm"}, source{"oci://registry.example.com/podinfo", "1.2.3", ".", namespace}},
		"oci, defaults":        {fleet.Manifests{Manifests: folder.Manifests{Storage: "oci", Repo: "oci://registry.example.com/podinfo"}, Type: "helm"}, source{"oci://registry.example.com/podinfo", "latest", ".", namespace}},
	} {
		for reconciler, read := range map[string]func([]any) source{
			"flux": fluxSource, "argocd": argoSource, "argocd-hub": hubSource, "fleet": fleetSource, "zarf": zarfSource,
		} {
			t.Run(name+"/"+reconciler, func(t *testing.T) {
				files := deployment{reconciler: reconciler, manifests: example.manifests}.render(t)
				got := read(documentsOf(t, []byte(files["reconciler.yaml"])))
				got.path = path.Clean(got.path)
				if got != example.want {
					t.Errorf("%s: got\n%v\nwant\n%v\n%s", reconciler, got, example.want, files["reconciler.yaml"])
				}
			})
		}
	}
}

func TestRequirementsComeFirst(t *testing.T) {
	api, redis := required("api", fromGit()), required("redis", helmChart)
	both := []fleet.Workload{api, redis}
	for name, example := range map[string]struct {
		deployment deployment
		place      string
		want       string
	}{
		"Flux orders Kustomizations":   {deployment{requires: both}, "spec.dependsOn", "[map[name:dev-drone-api-dev]]"},
		"Flux orders HelmReleases":     {deployment{requires: both, manifests: helmChart}, "spec.dependsOn", "[map[name:dev-drone-redis-dev]]"},
		"Argo CD has sync waves":       {deployment{requires: both, reconciler: "argocd"}, "metadata.annotations", "map[argocd.argoproj.io/sync-wave:1]"},
		"Argo CD without requirements": {deployment{reconciler: "argocd"}, "metadata.annotations", "<nil>"},
		"Rancher Fleet orders HelmOps": {
			deployment{requires: both, reconciler: "fleet", manifests: helmChart}, "spec.dependsOn",
			"[map[selector:map[matchLabels:map[fleet.cattle.io/repo-name:dev-drone-api-dev]]] map[name:dev-drone-redis-dev]]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			documents := documentsOf(t, []byte(example.deployment.render(t)["reconciler.yaml"]))
			if got := fmt.Sprint(valueAt(documents[len(documents)-1], example.place)); got != example.want {
				t.Errorf("got %s, want %s", got, example.want)
			}
		})
	}
}

// hostile has values that may escape from their place in a template.
var hostile = []string{
	`x" # y`, `x' y`, "x\ny: z", "x\"\n  y: z", `{{ .Namespace }}`, `\`, `x\`, "\t", "\u0085\u2028", "é🚢", `- x`, `*x`, `&x`, `!x`, `%x`, `@x`, "`x`", "x: y", "x #y",
	"true", "0x1f", "1e3", "~", "null", "---", "...", "", " ", "\x00", "\x7f", "a\r\nb",
}

func TestValuesStayInTheirPlace(t *testing.T) {
	wants := map[[2]string]string{} // by reconciler and storage
	for _, value := range hostile {
		for _, reconciler := range []string{"flux", "argocd", "argocd-hub", "config-sync", "fleet", "zarf"} {
			for _, storage := range []string{"git", "helm", "oci"} {
				if reconciler == "config-sync" && storage != "git" {
					continue // it deploys no charts
				}
				line := strings.ReplaceAll(value, "\n", "") // a URL has one line
				scheme := map[string]string{"git": "https://", "helm": "https://", "oci": "oci://"}[storage]
				manifests := fleet.Manifests{
					Manifests:  folder.Manifests{Storage: storage, Repo: scheme + "x/" + line, Version: value, Chart: line, Path: value, Branch: value},
					Parameters: map[string]any{"secret_ref": value, "project": value, "values": map[string]any{"a": value}},
				}
				if storage == "git" {
					manifests.Chart, manifests.Version = "", ""
					delete(manifests.Parameters, "values")
				}
				if storage != "git" && strings.Trim(value, "\n") == "" {
					continue // no chart
				}
				files := deployment{reconciler: reconciler, manifests: manifests}.render(t)
				key := [2]string{reconciler, storage}
				if wants[key] == "" {
					wants[key] = shape(documentsOf(t, []byte(plainReconciler(t, reconciler, scheme, manifests))))
				}
				got, want := shape(documentsOf(t, []byte(files["reconciler.yaml"]))), wants[key]
				if value != "" && got != want {
					t.Errorf("%s, %s: with %q, got\n%s\nwant\n%s\n%s", reconciler, storage, value, got, want, files["reconciler.yaml"])
				}
			}
		}
		groups := fleet.Workspace{Name: "kaizen", ContributorGroups: []string{value}, ReaderGroups: []string{value}}
		policy := documentsOf(t, []byte(deployment{workspace: groups}.render(t)["policy.yaml"]))
		if got := fmt.Sprint(valueAt(policy[0], "subjects.0.name")); got != value {
			t.Errorf("group %q: got subject %q", value, got)
		}
		config := map[string]any{"a": value, "list": []any{value}}
		for _, configType := range []string{"configmap", "symphony"} {
			documents := documentsOf(t, []byte(deployment{configType: configType, config: config}.render(t)["platform-config.yaml"]))
			if got := textAt(documents[len(documents)-1], "data.a", "spec.properties.a"); got != value {
				t.Errorf("%s: value %q: got %q", configType, value, got)
			}
		}
	}
}

// plainReconciler renders an agent's objects with "x" in place of each value of the manifests.
func plainReconciler(t *testing.T, reconciler, scheme string, plain fleet.Manifests) string {
	t.Helper()
	plain.Repo, plain.Path, plain.Branch = scheme+"x/x", "x", "x"
	plain.Parameters = map[string]any{"secret_ref": "x", "project": "x", "values": map[string]any{"a": "x"}}
	if plain.Storage == "git" {
		delete(plain.Parameters, "values")
	} else {
		plain.Chart, plain.Version = "x", "x"
	}
	return deployment{reconciler: reconciler, manifests: plain}.render(t)["reconciler.yaml"]
}

// shape returns a document without its scalars.
func shape(value any) string {
	switch value := value.(type) {
	case map[string]any:
		shapes := map[string]string{}
		for key, element := range value {
			shapes[key] = shape(element)
		}
		return fmt.Sprint(shapes)
	case []any:
		shapes := []string{}
		for _, element := range value {
			shapes = append(shapes, shape(element))
		}
		return fmt.Sprint(shapes)
	}
	return fmt.Sprintf("%T", value)
}
