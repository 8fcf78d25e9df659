package pipeline_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// referenceValue returns a fleet of 1,000 assignments, as provider::flotilla::fleet does.
func referenceValue(t testing.TB) fleet.Value {
	t.Helper()
	return valueOf(t, fleettest.Input(fleettest.Reference(1_000, 1)))
}

func valueOf(t testing.TB, input map[string]any) fleet.Value {
	t.Helper()
	decoded, findings := fleet.Decode(input)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

var destination = pipeline.Destination{Owner: "dev", Repo: &folder.Location{URL: "https://git.example.com/gitops.git", Branch: "dev"}}

func TestTheSameFleetHasTheSameFolders(t *testing.T) {
	value := referenceValue(t)
	var first folder.Trees
	for range 2 {
		result, findings := pipeline.Compute(value)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		rendering := result.Render(t.Context(), destination, nil)
		if len(rendering.Findings) > 0 {
			t.Fatal(rendering.Findings)
		}
		wanted := rendering.Wanted()
		if first == nil {
			first = wanted
		}
		if wanted.Count() < 900 || !maps.EqualFunc(first, wanted, maps.Equal[map[string]string, map[string]string]) {
			t.Fatalf("got %d folders, or different ones in the second run", wanted.Count())
		}
	}
}

func TestUnknownEntriesAffectOnlyTheirAssignments(t *testing.T) {
	whole := referenceValue(t)
	result, _ := pipeline.Compute(whole)
	known := result.Render(t.Context(), destination, nil).Wanted()

	partial := whole
	partial.Config, partial.Manifests = maps.Clone(whole.Config), maps.Clone(whole.Manifests)
	containers := result.Snapshots.All[0].Containers()
	container := containers[len(containers)-1] // the most specific
	target := result.Schedule.Assignments[len(result.Schedule.Assignments)-1].Target.Name
	delete(partial.Config, container)
	delete(partial.Manifests, target)
	partialResult, findings := pipeline.Compute(partial)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	rendering := partialResult.Render(t.Context(), destination, nil)
	waiting := 0
	for i, assignment := range partialResult.Schedule.Assignments {
		waits := rendering.WaitsFor(i)
		reached := slices.Contains(partialResult.Snapshots.All[i].Containers(), container)
		if (waits == "") == (reached || assignment.Target.Name == target) {
			t.Fatalf("%s waits for %q", assignment.Key(), waits)
		}
		if reached && !strings.Contains(waits, `config container "`+container+`"`) ||
			assignment.Target.Name == target && !strings.Contains(waits, `deployment target "`+target+`"`) {
			t.Errorf("%s waits for %q", assignment.Key(), waits)
		}
		if waits != "" {
			waiting++
			continue
		}
		if rendering.Trees[i] != known[assignment.Host.Name][assignment.Target.Name] {
			t.Errorf("%s has a different folder", assignment.Key())
		}
	}
	if waiting == 0 || waiting == len(partialResult.Schedule.Assignments) {
		t.Errorf("got %d of %d waiting assignments", waiting, len(partialResult.Schedule.Assignments))
	}
}

func TestACacheComputesAFleetOnce(t *testing.T) {
	value, cache := referenceValue(t), &pipeline.Cache{}
	results := make([]*pipeline.Computation, 8)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i], _ = cache.Compute(value) })
	}
	group.Wait()
	for _, result := range results {
		if result != results[0] {
			t.Fatal("the fleet was computed twice")
		}
	}
	first, second := results[0].Render(t.Context(), destination, nil), results[0].Render(t.Context(), destination, nil)
	if &first.Trees[0] != &second.Trees[0] {
		t.Error("the fleet was rendered twice for one destination")
	}
	other := value
	other.Config = maps.Clone(value.Config)
	for name := range other.Config {
		other.Config[name] = `{"ANOTHER":"value"}`
	}
	if again, _ := cache.Compute(other); again == results[0] {
		t.Error("the cache returns the result of another fleet")
	}
}

func TestAllErrorsAreReportedOnceAndWithoutAResult(t *testing.T) {
	_, findings := pipeline.Compute(fleet.Value{Format: "2", Model: "{}"})
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "another version of the provider") {
		t.Error(findings)
	}
	wrong := valueOf(t, map[string]any{
		"environment": "dev", "workspaces": []any{map[string]any{"name": "team"}},
		"cluster_types": []any{map[string]any{"name": "drone", "reconciler": "broken"}, map[string]any{"name": "large"}},
		"workloads": []any{map[string]any{
			"name": "web", "workspace": "team", "deployment_targets": map[string]any{"a": map[string]any{
				"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/web"},
				"config_schema": `{"required":["MISSING"]}`,
			}},
		}},
		"target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
		"templates": []any{map[string]any{
			"name": "broken", "type": "reconciler", "manifests": []any{"{{ .Nothing"},
		}},
	})
	result, findings := pipeline.Compute(wrong)
	var summaries []string
	for _, finding := range findings {
		summaries = append(summaries, finding.Summary)
	}
	if slices.Sort(summaries); result != nil || !slices.Equal(summaries, []string{"Invalid configuration values", "Invalid template"}) {
		t.Errorf("result %v, findings %v", result, findings)
	}
}

func TestClustersOfHosts(t *testing.T) {
	f := &fleet.Fleet{
		Clusters: []fleet.Cluster{{Name: "b", ClusterType: "drone"}, {Name: "a", ClusterType: "drone"}, {Name: "c", ClusterType: "large"}},
	}
	if got := pipeline.ClustersOf(f, []string{"drone", "clusters/gone"}); !slices.Equal(got, []string{"a", "b", "gone"}) {
		t.Error(got)
	}
}
