package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/zclconf/go-cty/cty"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// kalypsoRoot returns Kalypso's sample control plane, with the output of its tutorial.
func kalypsoRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "kalypso"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("shared/kalypso is absent: Kalypso's sample cannot be read")
	}
	return filepath.ToSlash(root)
}

// kalypsoConfig returns a configuration of the edited sample. Empty documents are omitted.
func kalypsoConfig(t *testing.T, root, environment string, edit func(name, text string) string, repo repository) string {
	t.Helper()
	var documents strings.Builder
	for _, folder := range []string{"control-plane/main", "control-plane/" + environment, "tutorial/app", "tutorial/main", "tutorial/" + environment} {
		found := files(t, filepath.Join(root, filepath.FromSlash(folder)))
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if text := edit(folder+"/"+name, found[name]); strings.HasSuffix(name, ".yaml") && text != "" {
				fmt.Fprintf(&documents, "    %q = %s\n", folder+"/"+name, hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
			}
		}
	}
	return repo.provider + fmt.Sprintf(`
locals {
  fleet = provider::flotilla::control_plane(%[1]q, {
%[2]s  })
}

resource "flotilla_assignment" "test" {
  name        = %[1]q
  fleet       = local.fleet
  gitops_repo = { url = %[3]q, branch = %[1]q }
}
`, environment, documents.String(), repo.url)
}

func yamlDocuments(t *testing.T, contents map[string]string) map[string][]any {
	t.Helper()
	documents := map[string][]any{}
	for name, content := range contents {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for part := range strings.SplitSeq("\n"+content, "\n---") {
			var document any
			if err := yaml.Unmarshal([]byte(part), &document); err != nil {
				t.Fatalf("%s: %s\n%s", name, err, content)
			}
			if document != nil {
				documents[name] = append(documents[name], document)
			}
		}
	}
	return documents
}

func TestKalypsoControlPlaneGivesKalypsoOutput(t *testing.T) {
	t.Parallel()
	for _, environment := range []string{"dev", "stage"} {
		t.Run(environment, func(t *testing.T) {
			t.Parallel()
			onEveryServer(t, func(t *testing.T, repo repository) {
				root := kalypsoRoot(t)
				testSteps(t, resource.TestCase{
					ProtoV6ProviderFactories: factories(),
					Steps: []resource.TestStep{{
						Config: kalypsoConfig(t, root, environment, func(_, text string) string { return text }, repo),
						Check: func(*terraform.State) error {
							if commits := repo.commits(t, environment); commits != 1 {
								t.Errorf("%d commits, want one", commits)
							}
							got := yamlDocuments(t, repo.read(t, environment))
							want := yamlDocuments(t, files(t, filepath.Join(root, "tutorial", "expected", environment)))
							if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
								t.Errorf("files %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
							}
							for name := range want {
								if !reflect.DeepEqual(got[name], want[name]) {
									t.Errorf("%s holds\n%v\nwant\n%v", name, got[name], want[name])
								}
							}
							return nil
						},
					}}, // the step requires an empty second plan
				})
			})
		})
	}
}

func TestKalypsoControlPlaneWithBuiltinTemplates(t *testing.T) {
	t.Parallel()
	for _, environment := range []string{"dev", "stage"} {
		t.Run(environment, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			root := kalypsoRoot(t)
			config := kalypsoConfig(t, root, environment, func(name, text string) string {
				if strings.Contains(name, "/templates/") {
					return ""
				}
				return strings.ReplaceAll(text, "arc-flux", "flux")
			}, repo)
			testSteps(t, resource.TestCase{
				ProtoV6ProviderFactories: factories(),
				Steps: []resource.TestStep{{
					Config: config,
					Check: func(*terraform.State) error {
						got := yamlDocuments(t, repo.read(t, environment))
						want := yamlDocuments(t, files(t, filepath.Join(root, "tutorial", "expected", environment)))
						compareNamespacesAndConfiguration(t, got, want)
						return nil
					},
				}},
			})
		})
	}
}

func compareNamespacesAndConfiguration(t *testing.T, got, want map[string][]any) {
	t.Helper()
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("files %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name := range want {
		switch filepath.Base(name) {
		case "namespace.yaml":
			if got, want := field(got[name][0], "metadata", "name"), field(want[name][0], "metadata", "name"); got != want {
				t.Errorf("%s has namespace %v, want %v", name, got, want)
			}
		case "platform-config.yaml":
			if got, want := field(got[name][0], "data"), field(want[name][0], "data"); !reflect.DeepEqual(got, want) {
				t.Errorf("%s holds %v, want %v", name, got, want)
			}
		}
	}
}

func field(value any, keys ...string) any {
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// Flux uses kustomize, which reads NO and on as strings. YAML 1.1 reads them as bools.
func TestControlPlanesReadWordsAsKustomizeDoes(t *testing.T) {
	t.Parallel()
	const objects = `apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata: { name: drone, labels: { on: yes } }
spec: { reconciler: flux, namespaceService: default, configType: configmap }
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata: { name: shop }
spec: { workload: { repo: https://git.example.com/shop, branch: on, path: . }, workspace: shop }
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata: { name: shop }
spec:
  deploymentTargets:
    - { name: live, environment: dev, manifests: { repo: https://git.example.com/shop, branch: off, path: ./live } }
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: { name: all }
spec:
  deploymentTargetSelector: { labelSelector: { matchLabels: {} } }
  clusterTypeSelector: { labelSelector: { matchLabels: { on: yes } } }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: depots, labels: { platform-config: "true" } }
data:
  DE: berlin
  NO: oslo
  ON: toronto
  y: 2026-01-31
  n: yes
`
	fleet := providertest.Call{Function: "control_plane", Arguments: []any{"dev", map[string]any{"all.yaml": objects}}}
	read := func(dataSource, attribute string) map[string]any {
		t.Helper()
		values, diags := providertest.New(startProvider).
			ReadData(t.Context(), providertest.Configuration{}, dataSource, map[string]any{"fleet": fleet})
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		return values[attribute].(map[string]any)
	}
	var data map[string]any
	text := field(read("flotilla_config_snapshots", "snapshots"), "drone/shop-live", "json").(string)
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"DE": "berlin", "NO": "oslo", "ON": "toronto", "y": "2026-01-31", "n": "yes"}
	if !reflect.DeepEqual(data, want) {
		t.Errorf("the configuration is %v, want %v", data, want)
	}
	if files := fmt.Sprint(read("flotilla_manifests", "files")); !strings.Contains(files, `branch: "off"`) && !strings.Contains(files, "branch: off") {
		t.Errorf("no file has the branch off:\n%s", files)
	}
}
