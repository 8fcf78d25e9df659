package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Render does not check deployed folders. Earlier calls for other folders make no difference.
func TestDeployedFoldersAreNotChecked(t *testing.T) {
	broken := valueOf(t, map[string]any{
		"environment":   "dev",
		"workspaces":    []any{map[string]any{"name": "team"}},
		"cluster_types": []any{map[string]any{"name": "large"}},
		"workloads": []any{map[string]any{
			"name": "app", "workspace": "team", "deployment_targets": map[string]any{
				"live": map[string]any{"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app", "branch": "main"}},
			},
		}},
		"target_policies": []any{
			map[string]any{"name": "all", "deployment_target_selector": map[string]any{}, "cluster_type_selector": map[string]any{}},
		},
		"templates": []any{map[string]any{"name": "default", "type": "namespace", "manifests": []any{"kind: [\n"}}},
	})
	for _, deployedFirst := range []bool{true, false} {
		result, findings := pipeline.Compute(broken)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		trees := result.Render(t.Context(), pipeline.Destination{Owner: "other"}, nil).Wanted()
		check := func(deployed folder.Trees, want int) {
			t.Helper()
			if got := result.Render(t.Context(), pipeline.Destination{Owner: "other"}, deployed).Findings; len(got) != want {
				t.Errorf("deployed first %t: got findings %v, want %d", deployedFirst, got, want)
			}
		}
		if result, _ = pipeline.Compute(broken); deployedFirst {
			check(trees, 0)
			check(nil, 1)
		} else {
			check(nil, 1)
			check(trees, 0)
		}
	}
}

// The same mistake on a hundred hosts quotes different names. Only a few findings are shown.
func TestFindingsWithDifferentNamesAreFew(t *testing.T) {
	t.Parallel()
	var types, containers []any
	for i := range 100 {
		site := fmt.Sprint("site-", i)
		types = append(types, map[string]any{"name": site, "labels": map[string]any{"site": site, "region": "east"}})
		containers = append(
			containers,
			map[string]any{"name": site, "labels": map[string]any{"site": site}, "data": map[string]any{"LEVEL": "info"}},
		)
	}
	_, findings := pipeline.Compute(valueOf(t, map[string]any{
		"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}}, "cluster_types": types,
		"workloads": []any{map[string]any{"name": "app", "workspace": "team", "deployment_targets": map[string]any{
			"live": map[string]any{"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app", "branch": "main"}},
		}}},
		"target_policies": []any{
			map[string]any{"name": "all", "deployment_target_selector": map[string]any{}, "cluster_type_selector": map[string]any{}},
		},
		"config_containers": append(
			containers,
			map[string]any{"name": "region", "labels": map[string]any{"region": "east"}, "data": map[string]any{"LEVEL": "debug"}},
		),
	}))
	if len(findings) != fleet.MaxAlike+1 || findings[fleet.MaxAlike].Message != "95 further findings of this kind are not shown" {
		t.Errorf("got %d findings: %v", len(findings), findings)
	}
}
