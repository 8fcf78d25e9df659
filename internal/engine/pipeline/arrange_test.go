package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// computeFleet computes a fleet with the workloads api and db, each with one deployment target.
func computeFleet(t *testing.T, api, db map[string]any) (*pipeline.Computation, []pipeline.Diagnostic) {
	t.Helper()
	workload := func(name string, target map[string]any, requires ...any) map[string]any {
		target["environment"] = "dev"
		if target["manifests"] == nil {
			target["manifests"] = map[string]any{"repo": "https://git.example.com/" + name}
		}
		return map[string]any{
			"name": name, "workspace": "team", "requires": requires, "deployment_targets": map[string]any{"live": target},
		}
	}
	decoded, findings := fleet.Decode(map[string]any{
		"environment":     "dev",
		"workspaces":      []any{map[string]any{"name": "team"}},
		"cluster_types":   []any{map[string]any{"name": "drone"}},
		"workloads":       []any{workload("api", api, "db"), workload("db", db)},
		"target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
	})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.Compute(value)
}

func TestConflictsBetweenFoldersAreAnError(t *testing.T) {
	_, findings := computeFleet(t, map[string]any{"namespace": "shared"}, map[string]any{"namespace": "shared"})
	if got := fmt.Sprint(findings); len(findings) != 1 ||
		!strings.Contains(got, `"api-live" writes "platform-config" into namespace "shared", too`) {
		t.Errorf("got %s", got)
	}
}

func TestAnOrderThatAReconcilerCannotKeepIsAWarning(t *testing.T) {
	chart := map[string]any{"storage": "helm", "repo": "https://charts.example.com", "chart": "db", "version": "1.0.0"}
	result, findings := computeFleet(t, map[string]any{}, map[string]any{"manifests": chart})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	warnings := result.Warnings()
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, `"api-live" requires "db-live", and is deployed without waiting for it`) {
		t.Errorf("got %v", warnings)
	}
}

func TestFoldersCarryTheNameOfTheirOwner(t *testing.T) {
	result, findings := computeFleet(t, map[string]any{}, map[string]any{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	repo := &folder.Location{URL: "https://git.example.com/gitops", Branch: "dev"}
	first := result.Render(t.Context(), pipeline.Destination{Owner: "first", Repo: repo}, nil)
	second := result.Render(t.Context(), pipeline.Destination{Owner: "second", Repo: repo}, nil)
	for i := range first.Trees {
		if first.Trees[i] == "" || first.Trees[i] == second.Trees[i] {
			t.Errorf("trees %q and %q, want one for each owner", first.Trees[i], second.Trees[i])
		}
	}
	unknown := result.Render(t.Context(), pipeline.Destination{Repo: repo}, nil)
	for i := range unknown.Trees {
		if unknown.Trees[i] != "" {
			t.Errorf("got tree %q for an unknown owner, want none", unknown.Trees[i])
		}
	}
}
