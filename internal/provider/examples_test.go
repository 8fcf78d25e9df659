package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// TestExamplesApply applies every configuration that the documentation shows.
func TestExamplesApply(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	folders := 0
	for _, pattern := range []string{"newcomer", "company", "provider", "resources/*", "data-sources/*", "functions/*", "rendering/*", "secrets/*", "observing/*", "rollouts/*", "tutorials/rings", "sources/promotion", "constraints/*", "onboarding/cloud-init", "onboarding/azure-arc"} {
		matches, err := filepath.Glob(filepath.Join("..", "..", "examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range matches {
			folders++
			t.Run(filepath.Base(filepath.Dir(folder))+"/"+filepath.Base(folder), func(t *testing.T) {
				t.Parallel()
				// The provider runs in the test's process, whose working directory is this package.
				repository := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
				var config strings.Builder
				modules := map[string]string{}
				for name, content := range files(t, folder) {
					if strings.HasSuffix(name, ".tf") {
						config.WriteString(content)
						modules[name] = strings.ReplaceAll(content, `"gitops.git"`, strconv.Quote(repository))
					}
				}
				if strings.Contains(config.String(), "\nmodule ") { // which the stand-in does not know
					applyInWorkdirs(t, modules)
					return
				}
				if !strings.Contains(config.String(), "required_providers") {
					config.WriteString(requiredProviders)
				}
				text := onTestClusters(t, strings.ReplaceAll(config.String(), `"gitops.git"`, strconv.Quote(repository)))
				here, err := filepath.Abs(folder)
				if err != nil {
					t.Fatal(err)
				}
				text = strings.ReplaceAll(text, "${path.module}", filepath.ToSlash(here))
				inImport := strings.NewReplacer("https://git.example.com/platform/gitops.git", repository)
				if strings.Contains(text, "flotilla_commit_status") {
					host := (&standInStatuses{}).start(t)
					text = strings.ReplaceAll(text, "https://git.example.com", host)
					inImport = strings.NewReplacer("https://git.example.com", host)
				}
				if strings.Contains(text, `data "flotilla_repository_files"`) {
					text = newServedSources(t).config(text)
				}
				if strings.Contains(text, `data "flotilla_artifacts"`) {
					charts, chart := newChartServer(t), tillFiles
					if strings.Contains(text, `render = "objects"`) { // which takes no Secret
						chart = chartWithoutSecret
					}
					for _, version := range []string{"1.2.1", "1.2.2", "2.0.3"} {
						charts.publish(t, version, chart)
					}
					text = strings.ReplaceAll(text, "https://charts.example.com", charts.url)
				}
				if strings.Contains(text, "for_each") { // which the test library cannot read from a state
					applyInWorkdirs(t, map[string]string{"main.tf": text})
					return
				}
				if strings.Contains(text, ".metrics\n") { // which changes with the time, and is lived by a test of its own
					return
				}
				if strings.Contains(text, "labels_from") { // which wants nodes with these labels: see TestPoliciesSelectByFactsOfClusters
					return
				}
				// What clusters say of what the apply writes is seen by the next plan.
				isPage := strings.Contains(text, `data "flotilla_overview"`)
				if strings.Contains(text, ".proven\n") { // an example of promotion, which is lived by a test of its own
					applyInWorkdirs(t, map[string]string{"main.tf": text})
					return
				}
				steps := []resource.TestStep{{
					Config: text, ExpectNonEmptyPlan: isPage || strings.Contains(text, "candidate") || strings.Contains(text, `data "flotilla_compliance"`) && !strings.Contains(text, "evidence"),
				}}
				if script, err := os.ReadFile(filepath.Join(folder, "import.sh")); err == nil && filepath.Base(folder) != "flotilla_assignment" {
					match := regexp.MustCompile(`(?m)^terraform import (\S+) '(.*)'$`).FindStringSubmatch(string(script))
					if match == nil {
						t.Fatal("import.sh has no command of the form: terraform import ADDRESS 'ID'")
					}
					steps = append(steps, resource.TestStep{
						Config: text, ResourceName: match[1], ImportState: true, ImportStateId: inImport.Replace(match[2]),
					})
				}
				testSteps(t, resource.TestCase{ProtoV6ProviderFactories: factories(), Steps: steps})
			})
		}
	}
	if folders < 20 {
		t.Errorf("%d examples found, want one for each resource, data source and function, and those of the guides", folders)
	}
}

// applyInWorkdirs applies a configuration as users do, with the provider in this process, which checks it by the JSON Schemas. The plan that follows is empty, unless something is proven by then.
func applyInWorkdirs(t *testing.T, configuration map[string]string) {
	t.Helper()
	for _, tool := range tools(t) {
		w := newServedWorkdir(t, tool, configuration)
		w.run("apply", "-input=false", "-auto-approve")
		if !strings.Contains(fmt.Sprint(configuration), "candidate") {
			w.plan("-detailed-exitcode")
		}
	}
}

// TestExamplesAreValid has both tools validate every configuration of examples/, those too that no test can apply as
// they are.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	for name, tool := range tools(t) {
		hasActions := isTerraform(t, tool, 14)
		for _, folder := range exampleFolders(t) {
			if strings.HasPrefix(folder, "actions/") && !hasActions {
				continue // other tools have no actions
			}
			t.Run(name+"/"+folder, func(t *testing.T) {
				t.Parallel()
				configuration := map[string]string{}
				for file, content := range files(t, filepath.Join("..", "..", "examples", filepath.FromSlash(folder))) {
					// kubeconfigs are not there, and are not what this is about.
					kubeconfig := strings.ReplaceAll(twoContextKubeconfig, `eu.example.com"`, `eu.example.com", certificate-authority-data: ""`)
					configuration[file] = kubeconfigPattern.ReplaceAllLiteralString(content, strconv.Quote(kubeconfig))
				}
				configuration["flux.yaml"] = "" // of `flux install --export`
				if !strings.Contains(strings.Join(slices.Collect(maps.Values(configuration)), ""), "required_providers") {
					configuration["required_providers.tf"] = requiredProviders
				}
				newWorkdir(t, tool, configuration).run("validate", "-no-color")
			})
		}
	}
}

// exampleFolders are the folders of examples/ with a configuration in them.
func exampleFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	for name := range files(t, filepath.Join("..", "..", "examples")) {
		folder := path.Dir(name)
		later := slices.Contains([]string{"rollout", "page"}, path.Base(folder)) // which is what hello-world gets later
		states := path.Dir(
			folder,
		) == "sources/states" // which need a database to be initialised, and have a test of their own
		if path.Ext(name) == ".tf" && !later && !states {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	if len(folders) < 40 {
		t.Errorf("%d examples found", len(folders))
	}
	return folders
}

// kubeconfigPattern is how examples read the kubeconfig of a cluster.
var kubeconfigPattern = regexp.MustCompile(`file\("[^"]+\.kubeconfig"\)`)

// onTestClusters has the API server of tests stand in for the clusters of an example.
func onTestClusters(t *testing.T, config string) string {
	t.Helper()
	if !kubeconfigPattern.MatchString(config) {
		return config
	}
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	at := filepath.Join(t.TempDir(), "cluster.kubeconfig")
	writeFile(t, at, server.Kubeconfig())
	return kubeconfigPattern.ReplaceAllLiteralString(config, "file("+strconv.Quote(filepath.ToSlash(at))+")")
}
