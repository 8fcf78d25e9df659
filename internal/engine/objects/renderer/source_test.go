package renderer_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// configMap returns a ConfigMap with a name.
func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

func TestASourceOfFluxOmitsIgnoredFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files  map[string]string
		ignore string
		want   string
	}{
		"no list":                    {nil, "", "a"},
		"the kustomization":          {map[string]string{".sourceignore": "kustomization.yaml\n"}, "", "a b"},
		"in the folder itself":       {map[string]string{"live/.sourceignore": "# a comment\n\nkustomization.yaml\n"}, "", "a b"},
		"in another folder":          {map[string]string{"other/.sourceignore": "kustomization.yaml\n"}, "", "a"},
		"an exception in the folder": {map[string]string{".sourceignore": "kustomization.yaml\n", "live/.sourceignore": "!kustomization.yaml\n"}, "", "a"},
		"an exception of the source": {map[string]string{".sourceignore": "kustomization.yaml\n"}, "!kustomization.yaml", "a"},
		"by the source":              {nil, "kustomization.yaml", "a b"},
		"by a link":                  {map[string]string{".sourceignore": "-> ignored.txt", "ignored.txt": "kustomization.yaml\n"}, "", "a b"},
		"in a linked folder":         {map[string]string{"live/more": "-> ../other", "other/.sourceignore": "kustomization.yaml\n"}, "", "a"},
		"a linked kustomization":     {map[string]string{"live/kustomization.yaml": "-> ../other.yaml", "other.yaml": "resources: [a.yaml]\n"}, "", "a b"},
		"a linked folder":            {map[string]string{".sourceignore": "kustomization.yaml\n", "live/more": "-> ../other", "other/c.yaml": configMap("c")}, "", "a b"},
		"the defaults of Flux": {
			map[string]string{"live/kustomization.yaml": "-> /", "live/.github/c.yaml": configMap("c"), "live/.flux.yaml": configMap("d")}, "", "a b",
		},
		"a list in place of the defaults": {
			map[string]string{".sourceignore": "kustomization.yaml\n", "live/.github/c.yaml": configMap("c"), "live/.gitmodules": "e"}, "", "a b c",
		},
		"an ignored resource": {
			map[string]string{".sourceignore": "a.yaml\n"}, "",
			`error: folder "live" of https://git.example.com/shop at 5ca1ab1e: live/kustomization.yaml: Flux leaves out "live/a.yaml" because of a .sourceignore file or its defaults`,
		},
		"a linked resource": {
			map[string]string{"live/a.yaml": "-> ../other.yaml", "other.yaml": configMap("a")}, "",
			`error: folder "live" of https://git.example.com/shop at 5ca1ab1e: live/kustomization.yaml: "live/a.yaml" is a symbolic link, or below one, and Flux leaves links out`,
		},
		"a generator's file outside the artifact": {
			map[string]string{"live/kustomization.yaml": "configMapGenerator: [{name: a, files: [b]}]\n", "live/b": "-> /etc/passwd"}, "",
			`error: folder "live" of https://git.example.com/shop at 5ca1ab1e: loading KV pairs: file sources: [b]: symbolic link "live/b" leads out of the artifact`,
		},
		"a list outside the artifact": {map[string]string{".sourceignore": "-> /etc/passwd"}, "", `error: folder "live" of https://git.example.com/shop at 5ca1ab1e: symbolic link ".sourceignore" leads out`},
	} {
		files := map[string]string{"live/kustomization.yaml": "resources: [a.yaml]\n", "live/a.yaml": configMap("a"), "live/b.yaml": configMap("b")}
		for file, content := range test.files {
			files[file] = content
		}
		got := renderFiles(
			t,
			files,
			objects.Request{Path: "live", Source: &objects.FluxSource{Ignore: test.ignore}, Kustomize: &objects.Kustomize{Generate: true}},
		)
		var names []string
		for line := range strings.Lines(got) {
			if object, isConfigMap := strings.CutPrefix(line, "# kustomization /v1 ConfigMap /"); isConfigMap {
				names = append(names, strings.TrimSpace(object))
			}
		}
		isWanted := strings.Join(names, " ") == test.want || strings.HasPrefix(test.want, "error") && strings.HasPrefix(got, test.want)
		if !isWanted {
			t.Errorf("%s: got %q, want %s:\n%s", name, names, test.want, got)
		}
	}
}

func TestAChartOfAGitRepositoryLacksIgnoredFiles(t *testing.T) {
	t.Parallel()
	files := chart(map[string]string{"templates/a.yaml": configMap("a"), "templates/b.yaml": configMap("b")})
	files[".sourceignore"] = "b.yaml\n"
	request := objects.Request{Path: "chart", Helm: &objects.Helm{ReleaseName: "x"}}
	if got := renderFiles(t, files, request); strings.Count(got, "# chart") != 2 {
		t.Errorf("without a source of Flux: got\n%s", got)
	}
	request.Source = &objects.FluxSource{}
	if got := renderFiles(t, files, request); strings.Count(got, "# chart") != 1 || strings.Contains(got, "name: b") {
		t.Errorf("with a source of Flux: got\n%s", got)
	}
}

func TestAFileThatOverridesTheAgentsObjectIsAnError(t *testing.T) {
	t.Parallel()
	overrides := []string{".argocd-source.yaml", ".argocd-source-dev-shop-*.yaml"}
	for file, isWrong := range map[string]bool{
		"live/.argocd-source.yaml":               true,
		"live/.argocd-source-dev-shop-east.yaml": true,
		"live/.argocd-source-dev-bank.yaml":      false,
		"live/below/.argocd-source.yaml":         false,
		".argocd-source.yaml":                    false,
		"live/.argocd-allow-concurrency":         false,
	} {
		files := map[string]string{"live/a.yaml": configMap("a"), file: "kustomize: {namePrefix: evil-}\n"}
		got := renderFiles(t, files, objects.Request{Path: "live", Overrides: overrides, Directory: &objects.Directory{Exclude: ".argocd*"}})
		if want := "file " + file + " changes what the agent renders"; strings.Contains(got, want) != isWrong {
			t.Errorf("%s: got\n%s", file, got)
		}
	}
	files := chart(
		map[string]string{"templates/a.yaml": configMap("a"), ".argocd-source.yaml": "-> elsewhere.yaml", "elsewhere.yaml": "helm: {values: evil}"},
	)
	if got := renderFiles(t, files, objects.Request{Path: "chart", Overrides: overrides, Helm: &objects.Helm{ReleaseName: "x"}}); !strings.Contains(
		got,
		"file chart/.argocd-source.yaml",
	) {
		t.Errorf("by a link, got\n%s", got)
	}
}
