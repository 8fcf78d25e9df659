package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// fleetExample returns the files of Flux' fleet example.
func fleetExample(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "charts", "kustomize", "fleet-example")
	if _, err := os.Stat(root); err != nil {
		t.Skip("shared/charts is absent")
	}
	return files(t, root)
}

// TestAFleetIsAdopted applies the guide's example.
func TestAFleetIsAdopted(t *testing.T) {
	t.Parallel()
	example := fleetExample(t)
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSources(t)
			s.commit("platform/fleet.git", "main", example)
			config := guideExample(t, "adopting.md.tmpl", "examples/adopting/main.tf")
			config = strings.Replace(config, `"https://git.example.com/platform/fleet.git"`, `"`+s.url("platform/fleet.git")+`"`, 1)
			config = strings.Replace(config, "https://git.example.com/platform/gitops.git", "gitops.git", 1)
			w := newWorkdir(t, tool, map[string]string{"main.tf": config + requiredProviders})
			w.run("apply", "-input=false", "-auto-approve")
			w.plan("-detailed-exitcode")
			// The takeover starts from a branch with the same files.
			s.commit("platform/fleet.git", "adopted", example)
			writeFile(t, filepath.Join(w.path, "main.tf"), strings.Replace(config, `ref     = "main"`, `ref     = "adopted"`, 1)+requiredProviders)
			w.plan("-detailed-exitcode")
			written := repository{cloneURL: filepath.Join(w.path, "gitops.git")}.read(t, "prod")
			var folders []string
			for path := range written {
				if folder, ok := strings.CutSuffix(path, "/reconciler.yaml"); ok {
					folders = append(folders, folder)
				} else if strings.HasSuffix(path, ".yaml") {
					t.Errorf("%s is written", path)
				}
			}
			slices.Sort(folders)
			want := []string{
				"production/apps-production", "production/infra-configs-production", "production/infra-controllers-default",
				"staging/apps-staging", "staging/infra-configs-staging", "staging/infra-controllers-default",
			}
			if !reflect.DeepEqual(folders, want) {
				t.Errorf("folders are %s, want %s", folders, want)
			}
			text := written["staging/apps-staging/reconciler.yaml"]
			for _, part := range []string{"name: apps\n", "path: ./staging\n", "kind: ExternalArtifact\n", "flotilla.dev/deployment-target: apps-staging\n"} {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in\n%s", part, text)
				}
			}
			listed := w.run("output", "-json", "listed")
			for _, part := range []string{"ArtifactGenerator flux-system/flux-system is no object that deploys", "clusters/production/artifacts.yaml: "} {
				if !strings.Contains(listed, part) {
					t.Errorf("%q is not in %s", part, listed)
				}
			}
		})
	}
}

// Package adopt tests more cases of rendering.
func TestAdoptRendersAsAgentsDo(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: NAME, namespace: argocd}\n" +
		"spec: {project: default, source: {repoURL: 'https://git.example.com/fleet', path: PATH}, destination: {name: in-cluster}}\n"
	application := func(name, path string) string { return strings.NewReplacer("NAME", name, "PATH", path).Replace(object) }
	documents := map[string]any{
		"root.yaml":               application("root", "apps"),
		"apps/web.yaml":           application("web", "web"),
		"apps/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: eu-\n",
		"db/db.yaml":              application("db", "charts/db"),
		"db/patch.yaml":           "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: db, namespace: argocd}\nspec: {source: {targetRevision: v1.2.3}}\n",
		"db/kustomization.yaml":   "resources: [db.yaml]\npatches: [{path: patch.yaml}]\n",
		"far/far.yaml":            application("far", "far"),
		"far/kustomization.yaml":  "resources: [far.yaml, 'https://git.example.com/base']\nnamePrefix: a-\n",
	}
	options := map[string]any{"repository": map[string]any{"url": "https://git.example.com/fleet"}}
	value, err := evaluateAdopt(t, "prod", documents, options)
	if err != nil {
		t.Fatal(err)
	}
	adopted := value.(map[string]any)
	for _, part := range []string{"name:eu-web", "tag:v1.2.3"} {
		if fleet := fmt.Sprint(adopted["fleet"]); !strings.Contains(fleet, part) {
			t.Errorf("%q is not in %s", part, fleet)
		}
	}
	var listed []string
	for _, one := range adopted["listed"].([]any) {
		one := one.(map[string]any)
		if one["taken"] == false {
			listed = append(listed, fmt.Sprint(one["object"], " ", one["reason"]))
		}
	}
	want := []string{
		"Application argocd/db is not among the resources of db/kustomization.yaml: it is not known whether it is applied",
		"Application argocd/far may be changed by namePrefix of far/kustomization.yaml, and it is not known how it is applied: far/kustomization.yaml refers to https://git.example.com/base: " +
			"rendering reads nothing from the network, so take it into the repository",
		"Application argocd/root brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder",
	}
	if !slices.Equal(listed, want) {
		t.Errorf("got %q, want %q", listed, want)
	}
}

func evaluateAdopt(t *testing.T, arguments ...any) (any, error) {
	t.Helper()
	return providertest.New(startProvider).Evaluate(t.Context(), providertest.Call{Function: "adopt", Arguments: arguments})
}

func TestAdoptRefusesBadArguments(t *testing.T) {
	t.Parallel()
	const application = `{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, namespace: argocd}, spec: {
		project: default, source: {repoURL: "https://git.example.com/shop", path: "."}, destination: {name: eu}}}`
	documents, hosts := map[string]any{}, func(pattern string) map[string]any { return map[string]any{"hosts": pattern} }
	for want, arguments := range map[string][]any{
		`"Prod" is not a DNS label`:                              {"Prod", documents},
		`documents["a"]: must be the text of YAML documents`:     {"prod", map[string]any{"a": 1}},
		`options.host: unknown attribute; did you mean "hosts"?`: {"prod", documents, map[string]any{"host": "x"}},
		`there may be only one object of options`:                {"prod", documents, map[string]any{}, map[string]any{}},
		`options.hosts: must have {cluster_type}`:                {"prod", documents, hosts("clusters")},
		`options.hosts: no object to adopt is in a folder like "clusters/{cluster_type}"; "fleet/eu/a.yaml" is one of the files`: {
			"prod", map[string]any{"fleet/eu/a.yaml": application}, hosts("clusters/{cluster_type}"),
		},
	} {
		if _, err := evaluateAdopt(t, arguments...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v gives %v, want %q", arguments, err, want)
		}
	}
}

func TestAdoptWaitsForUnknownDocuments(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t) // the stand-in does not support locals that depend on resources
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: `
resource "terraform_data" "name" {
  input = "shop"
}

locals {
  adopted = provider::flotilla::adopt("prod", { "a.yaml" = jsonencode({
    apiVersion = "argoproj.io/v1alpha1", kind = "Application", metadata = { name = terraform_data.name.output, namespace = "argocd" }
    spec = { project = "default", source = { repoURL = "https://git.example.com/shop", path = "." }, destination = { name = "berlin" } }
  }) })
  fleet = provider::flotilla::fleet(local.adopted.fleet)
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = ` + strconv.Quote(filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))) + `, branch = "prod" }
}
`,
		Check: resource.TestCheckResourceAttrSet("flotilla_assignment.prod", "commit"),
	}}})
}
