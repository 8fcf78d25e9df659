package provider_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// fleetExample is Flux' own example of a fleet.
func fleetExample(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "charts", "kustomize", "fleet-example")
	if _, err := os.Stat(root); err != nil {
		t.Skip("shared/charts is absent")
	}
	return files(t, root)
}

// TestAFleetIsAdopted applies the guide's example: the folders have the objects that were there.
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
			// The takeover begins with a branch that keeps the files.
			s.commit("platform/fleet.git", "adopted", example)
			writeFile(t, filepath.Join(w.path, "main.tf"), strings.Replace(config, `ref     = "main"`, `ref     = "adopted"`, 1)+requiredProviders)
			w.plan("-detailed-exitcode")
			written := files(t, repository{cloneURL: filepath.Join(w.path, "gitops.git")}.clone(t, "prod"))
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
			for _, part := range []string{"ArtifactGenerator flux-system/flux-system is no object that says", "clusters/production/artifacts.yaml: "} {
				if !strings.Contains(listed, part) {
					t.Errorf("%q is not in %s", part, listed)
				}
			}
		})
	}
}

// adopting is a configuration that adopts documents, and writes what is made of them.
func adopting(documents map[string]string) string {
	config := `
locals {
  adopted     = provider::flotilla::adopt("prod", local.documents, { repository = { url = "https://git.example.com/fleet" } })
  fleet       = provider::flotilla::fleet(local.adopted.fleet)
  gitops_repo = { url = "gitops.git", branch = "prod" }
  documents = {
`
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		config += "    " + strconv.Quote(name) + " = " + strconv.Quote(documents[name]) + "\n"
	}
	return config + `  }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

output "listed" {
  value = [for one in local.adopted.listed : "${one.object} ${one.reason}" if !one.taken]
}

output "policies" {
  value = local.adopted.fleet.target_policies
}
`
}

// TestApplicationSetsAreAdopted adopts the Applications that the guide's ApplicationSet makes, and takes one as it is whose clusters
// are not known.
func TestApplicationSetsAreAdopted(t *testing.T) {
	t.Parallel()
	_, set, _ := strings.Cut(readFile(t, filepath.Join("..", "..", "docs", "guides", "adopting.md")), "```yaml\n")
	set, _, _ = strings.Cut(set, "```")
	secret := func(name, env string) string {
		return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, env: " + env + "}}\n" +
			"stringData: {name: " + name + ", server: 'https://" + name + ".example.com'}\n"
	}
	clusters := secret("eu-1", "prod") + secret("eu-2", "prod") + secret("dev-1", "dev")
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adopted := func(documents map[string]string) (workdir, map[string]string) {
				w := newWorkdir(t, tool, map[string]string{"main.tf": adopting(documents) + requiredProviders})
				w.run("apply", "-input=false", "-auto-approve")
				w.plan("-detailed-exitcode")
				return w, files(t, repository{cloneURL: filepath.Join(w.path, "gitops.git")}.clone(t, "prod"))
			}
			w, written := adopted(map[string]string{"web.yaml": set, "clusters.yaml": clusters})
			for name, isThere := range map[string]bool{"eu-1": true, "eu-2": true, "dev-1": false} {
				text := written[name+"/web-default/reconciler.yaml"]
				if strings.Contains(text, "name: "+name+"-web\n") != isThere ||
					strings.Contains(text, "server: https://"+name+".example.com\n") != isThere {
					t.Errorf("on %s is %q", name, text)
				}
			}
			if listed := w.run("output", "-json", "listed"); !strings.Contains(
				listed,
				"ApplicationSet argocd/web makes 2 Applications, which are adopted in its place",
			) {
				t.Errorf("listed is %s", listed)
			}
			if policies := w.run("output", "-json", "policies"); !strings.Contains(policies, `"match_labels":{"env":"prod"}`) {
				t.Errorf("policies are %s", policies)
			}
			_, written = adopted(map[string]string{"web.yaml": set})
			if text := written["prod/web-default/reconciler.yaml"]; !strings.Contains(text, "kind: ApplicationSet\n") {
				t.Errorf("without clusters %q is written", text)
			}
		})
	}
}

// TestAFleetIsAdoptedAsItIsApplied adopts an application of applications, a kustomization that patches, and one that cannot
// be rendered.
func TestAFleetIsAdoptedAsItIsApplied(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: NAME, namespace: argocd}\n" +
		"spec: {project: default, source: {repoURL: 'https://git.example.com/fleet', path: PATH}, destination: {name: in-cluster}}\n"
	application := func(name, path string) string { return strings.NewReplacer("NAME", name, "PATH", path).Replace(object) }
	documents := map[string]string{
		"root.yaml":               application("root", "apps"),
		"apps/web.yaml":           application("web", "web"),
		"apps/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: eu-\n",
		"db/db.yaml":              application("db", "charts/db"),
		"db/patch.yaml":           "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: db, namespace: argocd}\nspec: {source: {targetRevision: v1.2.3}}\n",
		"db/kustomization.yaml":   "resources: [db.yaml]\npatches: [{path: patch.yaml}]\n",
		"far/far.yaml":            application("far", "far"),
		"far/kustomization.yaml":  "resources: [far.yaml, 'https://git.example.com/base']\nnamePrefix: a-\n",
	}
	config := adopting(documents)
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkdir(t, tool, map[string]string{"main.tf": config + requiredProviders})
			w.run("apply", "-input=false", "-auto-approve")
			w.plan("-detailed-exitcode")
			written := files(t, repository{cloneURL: filepath.Join(w.path, "gitops.git")}.clone(t, "prod"))
			for path, part := range map[string]string{
				"prod/eu-web-default/reconciler.yaml": "name: eu-web\n", "prod/db-default/reconciler.yaml": "targetRevision: v1.2.3\n",
			} {
				if !strings.Contains(written[path], part) {
					t.Errorf("%q is not in %s:\n%s", part, path, written[path])
				}
			}
			var listed []string
			if err := json.Unmarshal([]byte(w.run("output", "-json", "listed")), &listed); err != nil {
				t.Fatal(err)
			}
			want := []string{
				"Application argocd/db is not among the resources of db/kustomization.yaml: it is not known whether it is applied",
				"Application argocd/far may be changed by namePrefix of far/kustomization.yaml, and it is not known how it is applied: far/kustomization.yaml refers to https://git.example.com/base: " +
					"rendering reads nothing from the network, so take it into the repository",
				"Application argocd/root brings objects of reconcilers, which are adopted themselves: it goes on to follow its folder",
			}
			if !reflect.DeepEqual(listed, want) {
				t.Errorf("listed is %q, want %q", listed, want)
			}
		})
	}
}

func TestAdoptRefusesBadArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ arguments, want string }{
		"environment":          {`"Prod", {}`, `"Prod" is not a DNS label`},
		"documents":            {`"prod", { a = 1 }`, `documents["a"]: must be the text of YAML documents`},
		"options":              {`"prod", {}, { host = "x" }`, `options.host: unknown attribute; did you mean "hosts"?`},
		"two objects":          {`"prod", {}, {}, {}`, `there may be only one object of options`},
		"a pattern of nothing": {`"prod", {}, { hosts = "clusters" }`, `options.hosts: must have {cluster_type}`},
		"a pattern without a match": {
			`"prod", { "fleet/eu/a.yaml" = jsonencode({
				apiVersion = "argoproj.io/v1alpha1", kind = "Application", metadata = { name = "shop", namespace = "argocd" }
				spec = { project = "default", source = { repoURL = "https://git.example.com/shop", path = "." }, destination = { name = "eu" } }
			}) }, { hosts = "clusters/{cluster_type}" }`,
			`options.hosts: no object to adopt is in a folder like "clusters/{cluster_type}"; "fleet/eu/a.yaml" is one of the files`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
				Config: "output \"adopted\" {\n  value = provider::flotilla::adopt(" + test.arguments + ")\n}\n", PlanOnly: true, ExpectError: words(test.want),
			}}})
		})
	}
}

// TestAdoptWaitsForWhatIsNotKnown plans with documents that are known at apply.
func TestAdoptWaitsForWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t) // the stand-in knows no local that waits for a resource
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

// Flux builds folders without a kustomization.yaml with kustomize, too: NO, yes and dates are texts there.
func TestAFolderOfFluxIsAdoptedAsKustomizeReadsIt(t *testing.T) {
	t.Parallel()
	const release = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 1h, url: https://charts.example.com}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app, namespace: shop}
spec:
  interval: 10m
  chart: {spec: {chart: app, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}}}
  values: {country: NO, enabled: yes, since: 2024-01-01, axis: {x: 1, y: 2, n: 3}}
`
	config := adopting(map[string]string{"clusters/a/app.yaml": release})
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkdir(t, tool, map[string]string{"main.tf": config + requiredProviders})
			w.run("apply", "-input=false", "-auto-approve")
			written := files(t, repository{cloneURL: filepath.Join(w.path, "gitops.git")}.clone(t, "prod"))
			var all strings.Builder
			for _, text := range written {
				all.WriteString(text)
			}
			for _, part := range []string{`country: "NO"`, `enabled: "yes"`, `since: "2024-01-01"`, `"y": 2`, `"n": 3`} {
				if !strings.Contains(all.String(), part) {
					t.Errorf("%q is not in\n%s", part, all.String())
				}
			}
		})
	}
}
