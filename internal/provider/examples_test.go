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
				// The provider runs in this process, in the folder of the package.
				repository := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
				var config strings.Builder
				modules := map[string]string{}
				for name, content := range files(t, folder) {
					if strings.HasSuffix(name, ".tf") {
						config.WriteString(content)
						modules[name] = strings.ReplaceAll(content, `"gitops.git"`, strconv.Quote(repository))
					}
				}
				if strings.Contains(config.String(), "\nmodule ") { // the stand-in has no modules
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
					if strings.Contains(text, `render = "objects"`) { // rejects Secrets
						chart = chartWithoutSecret
					}
					for _, version := range []string{"1.2.1", "1.2.2", "2.0.3"} {
						charts.publish(t, version, chart)
					}
					text = strings.ReplaceAll(text, "https://charts.example.com", charts.url)
				}
				if strings.Contains(text, "for_each") { // the test library cannot read such a state
					applyInWorkdirs(t, map[string]string{"main.tf": text})
					return
				}
				if strings.Contains(text, ".metrics\n") { // metrics change with time and have their own test
					return
				}
				if strings.Contains(text, "labels_from") { // needs nodes with these labels: see TestPoliciesSelectByFactsOfClusters
					return
				}
				// Only the next plan sees the status that clusters report after the apply.
				isPage := strings.Contains(text, `data "flotilla_overview"`)
				if strings.Contains(text, ".proven\n") { // promotions have their own test
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
		t.Errorf("got %d examples, want one for each resource, data source and function, and those of the guides", folders)
	}
}

// applyInWorkdirs applies a configuration with the real tools and the provider in this process, which checks it against the
// JSON Schemas.
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

// TestExamplesAreValid includes examples that no test can apply.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	for name, tool := range tools(t) {
		hasActions := isTerraform(t, tool, 14)
		for _, folder := range exampleFolders(t) {
			if strings.HasPrefix(folder, "actions/") && !hasActions {
				continue // other tools lack actions
			}
			t.Run(name+"/"+folder, func(t *testing.T) {
				t.Parallel()
				configuration := map[string]string{}
				for file, content := range files(t, filepath.Join("..", "..", "examples", filepath.FromSlash(folder))) {
					// The files do not exist.
					kubeconfig := strings.ReplaceAll(twoContextKubeconfig, `eu.example.com"`, `eu.example.com", certificate-authority-data: ""`)
					configuration[file] = kubeconfigPattern.ReplaceAllLiteralString(content, strconv.Quote(kubeconfig))
				}
				configuration["flux.yaml"] = "" // in place of `flux install --export`
				if !strings.Contains(strings.Join(slices.Collect(maps.Values(configuration)), ""), "required_providers") {
					configuration["required_providers.tf"] = requiredProviders
				}
				newWorkdir(t, tool, configuration).run("validate", "-no-color")
			})
		}
	}
}

func exampleFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	for name := range files(t, filepath.Join("..", "..", "examples")) {
		folder := path.Dir(name)
		later := slices.Contains([]string{"rollout", "page"}, path.Base(folder)) // later steps of hello-world
		states := path.Dir(
			folder,
		) == "sources/states" // needs a database, and has its own test
		if path.Ext(name) == ".tf" && !later && !states {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	if len(folders) < 40 {
		t.Errorf("got %d examples, want at least 40", len(folders))
	}
	return folders
}

var kubeconfigPattern = regexp.MustCompile(`file\("[^"]+\.kubeconfig"\)`)

// onTestClusters lets the API server of tests stand in for the clusters of an example.
func onTestClusters(t *testing.T, config string) string {
	t.Helper()
	if !kubeconfigPattern.MatchString(config) {
		return config
	}
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	kubeconfig := filepath.Join(t.TempDir(), "cluster.kubeconfig")
	writeFile(t, kubeconfig, server.Kubeconfig())
	return kubeconfigPattern.ReplaceAllLiteralString(config, "file("+strconv.Quote(filepath.ToSlash(kubeconfig))+")")
}
