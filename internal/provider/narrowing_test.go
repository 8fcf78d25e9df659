package provider_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestNarrowingToAMissingNameIsAnErrorWithASuggestion(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	for _, source := range []string{"flotilla_manifests", "flotilla_config_snapshots", "flotilla_scheduling"} {
		_, diags := w.ReadData(t.Context(), providertest.Configuration{}, source, map[string]any{
			"fleet": fleetOf(nil), "cluster_type": "drne", "cluster": "store-1", "deployment_target": "edge",
		})
		var got []string
		for _, diagnostic := range diags {
			got = append(got, diagnostic.At+" "+diagnostic.Summary+": "+diagnostic.Detail)
		}
		want := []string{
			`AttributeName("cluster_type") No such cluster type: No cluster type of this fleet is called "drne"; did you mean "drone"?`,
			`AttributeName("cluster") No such cluster: No cluster of this fleet is called "store-1".`,
			`AttributeName("deployment_target") No such deployment target: No deployment target of this fleet is called "edge".`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

// A host without assignments exists, so its name is no mistake.
func TestNarrowingToAHostWithoutAssignmentsGivesNothing(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	for source, attribute := range map[string]string{"flotilla_manifests": "files", "flotilla_config_snapshots": "snapshots", "flotilla_scheduling": "assignments"} {
		values, diags := w.ReadData(t.Context(), providertest.Configuration{}, source, map[string]any{
			"fleet": fleetOf(nil), "cluster_type": "spare",
		})
		selected, ok := values[attribute].(map[string]any)
		if diags.Err() != nil || !ok || len(selected) > 0 {
			t.Errorf("%s: got %v and %s, want an empty result", source, values, diags)
		}
	}
}

func TestSchedulingListsTheSelectedAssignments(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	for _, c := range []struct {
		arguments map[string]any
		want      []string
	}{
		{map[string]any{}, []string{"drone/app-core", "drone/app-edge", "large/app-core"}},
		{map[string]any{"cluster_type": "drone"}, []string{"drone/app-core", "drone/app-edge"}},
		{map[string]any{"deployment_target": "app-core"}, []string{"drone/app-core", "large/app-core"}},
		{map[string]any{"cluster_type": "large", "deployment_target": "app-core"}, []string{"large/app-core"}},
	} {
		c.arguments["fleet"] = fleetOf(nil)
		values, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_scheduling", c.arguments)
		assignments, _ := values["assignments"].(map[string]any)
		if got := slices.Sorted(maps.Keys(assignments)); diags.Err() != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q: %s", c.arguments, got, c.want, diags)
		}
		if targets, _ := values["deployment_targets"].(map[string]any); len(targets) != 2 {
			t.Errorf("%v: got deployment targets %v, want two", c.arguments, targets)
		}
	}
}
