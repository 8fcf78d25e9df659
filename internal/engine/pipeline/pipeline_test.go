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

// value is a fleet of 1,000 assignments as provider::flotilla::fleet returns it.
func value(t testing.TB) fleet.Value {
	t.Helper()
	return valueOf(t, fleettest.Input(fleettest.Reference(1_000, 1)))
}

func valueOf(t testing.TB, input map[string]any) fleet.Value {
	t.Helper()
	decoded, findings := fleet.Decode(input)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	made, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

var destination = pipeline.Destination{Owner: "dev", Repo: &folder.Location{URL: "https://git.example.com/gitops.git", Branch: "dev"}}

func TestTheSameFleetComesToTheSame(t *testing.T) {
	value := value(t)
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
			t.Fatalf("%d folders, and not the same ones", wanted.Count())
		}
	}
}

func TestWhatIsNotKnownReachesNoFurtherThanItMust(t *testing.T) {
	whole := value(t)
	result, _ := pipeline.Compute(whole)
	known := result.Render(t.Context(), destination, nil).Wanted()

	partly := whole
	partly.Config, partly.Manifests = maps.Clone(whole.Config), maps.Clone(whole.Manifests)
	containers := result.Snapshots.All[0].Containers()
	container := containers[len(containers)-1] // the most specific
	target := result.Schedule.Assignments[len(result.Schedule.Assignments)-1].Target.Name
	delete(partly.Config, container)
	delete(partly.Manifests, target)
	open, findings := pipeline.Compute(partly)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	rendering := open.Render(t.Context(), destination, nil)
	waiting := 0
	for i, assignment := range open.Schedule.Assignments {
		waits := rendering.WaitsFor(i)
		reached := slices.Contains(open.Snapshots.All[i].Containers(), container)
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
			t.Errorf("%s is another folder", assignment.Key())
		}
	}
	if waiting == 0 || waiting == len(open.Schedule.Assignments) {
		t.Errorf("%d of %d wait", waiting, len(open.Schedule.Assignments))
	}
}

func TestACacheComputesAFleetOnce(t *testing.T) {
	value, cache := value(t), &pipeline.Cache{}
	results := make([]*pipeline.Computation, 8)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i], _ = cache.Compute(value) })
	}
	group.Wait()
	for _, result := range results {
		if result != results[0] {
			t.Fatal("one fleet was computed twice")
		}
	}
	first, second := results[0].Render(t.Context(), destination, nil), results[0].Render(t.Context(), destination, nil)
	if &first.Trees[0] != &second.Trees[0] {
		t.Error("one fleet was rendered twice for one destination")
	}
	other := value
	other.Config = maps.Clone(value.Config)
	for name := range other.Config {
		other.Config[name] = `{"ANOTHER":"value"}`
	}
	if again, _ := cache.Compute(other); again == results[0] {
		t.Error("another fleet is taken for the same")
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
