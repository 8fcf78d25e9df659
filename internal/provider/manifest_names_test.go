package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func fluxFleet(workload string, targets map[string]any) providertest.Call {
	return providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment":   "dev",
		"workspaces":    []any{map[string]any{"name": "orders"}},
		"cluster_types": []any{map[string]any{"name": "flux"}},
		"workloads":     []any{map[string]any{"name": workload, "workspace": "orders", "deployment_targets": targets}},
		"target_policies": []any{map[string]any{
			"name": "everywhere", "cluster_type_selector": map[string]any{},
		}},
	}}}
}

// renderedFiles returns the files of a fleet from flotilla_manifests, by path.
func renderedFiles(t *testing.T, fleet any) map[string]any {
	t.Helper()
	values, diags := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{"fleet": fleet})
	files, ok := values["files"].(map[string]any)
	if diags.Err() != nil || !ok {
		t.Fatalf("%v: %s", values, diags)
	}
	return files
}

func TestReleasesWithLongNamesStayDistinct(t *testing.T) {
	t.Parallel()
	chart := map[string]any{"storage": "helm", "repo": "https://charts.example.com", "chart": "worker", "version": "1.0.0"}
	target := map[string]any{"environment": "dev", "namespace": "orders", "manifests": chart, "config_as": []any{"values"}}
	files := renderedFiles(t, fluxFleet("order-processing-background-workers", map[string]any{
		"partition-europe-one": target, "partition-europe-two": target,
	}))
	releases := map[string]bool{}
	for _, text := range files {
		for line := range strings.Lines(text.(string)) {
			if name, isName := strings.CutPrefix(strings.TrimSpace(line), "releaseName: "); isName {
				releases[name] = true
				if len(strings.Trim(name, `"`)) > 53 {
					t.Errorf("release name %s has more than 53 characters", name)
				}
			}
		}
	}
	if len(releases) != 2 {
		t.Errorf("got releases %v, want two", releases)
	}
}

func TestShortSSHURLsGetASchemeForFlux(t *testing.T) {
	t.Parallel()
	files := renderedFiles(t, fluxFleet("till", map[string]any{"live": map[string]any{
		"environment": "dev", "manifests": map[string]any{"repo": "git@git.example.com:shop/till.git"},
	}}))
	for path, text := range files {
		if strings.HasSuffix(path, "reconciler.yaml") && !strings.Contains(text.(string), `url: "ssh://git@git.example.com/shop/till.git"`) {
			t.Errorf("%s has no URL with ssh://:\n%s", path, text)
		}
	}
}

func TestWrongTypesAndSchemesOfManifestsAreErrors(t *testing.T) {
	t.Parallel()
	for want, manifests := range map[string]map[string]any{
		`must be one of helm, kustomize, not "Helm"; did you mean "helm"?`: {"repo": "https://git.example.com/shop/till", "type": "Helm"},
		`must be one of helm, kustomize, not "chart"`:                      {"repo": "https://git.example.com/shop/till", "type": "chart"},
		`must start with https://, http://, ssh://`:                        {"repo": "git://git.example.com/shop/till"},
	} {
		_, err := providertest.New(startProvider).Evaluate(t.Context(), fluxFleet("till", map[string]any{
			"live": map[string]any{"environment": "dev", "manifests": manifests},
		}))
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), `workloads["till"].deployment_targets["live"].manifests`) {
			t.Errorf("%v: got %v, want %q", manifests, err, want)
		}
	}
}
