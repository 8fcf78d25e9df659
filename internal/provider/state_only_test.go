package provider_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func stateOnlyConfiguration(labels any) providertest.Configuration {
	with := func(attributes map[string]any) providertest.Resource {
		if labels != nil {
			attributes["labels"] = labels
		}
		return providertest.Resource{Attributes: attributes}
	}
	return providertest.Configuration{Resources: map[string]providertest.Resource{
		"flotilla_environment.x": with(
			map[string]any{"name": "dev", "gitops_repo": map[string]any{"url": "https://git.example.com/gitops", "branch": "dev"}},
		),
		"flotilla_workspace.x":        with(map[string]any{"name": "team"}),
		"flotilla_cluster_type.x":     with(map[string]any{"name": "drone", "environment": "dev"}),
		"flotilla_cluster.x":          with(map[string]any{"name": "drone-7", "environment": "dev", "cluster_type": "drone"}),
		"flotilla_workload.x":         with(map[string]any{"name": "app", "workspace": "team"}),
		"flotilla_config_container.x": with(map[string]any{"name": "all", "data": map[string]any{"A": "1"}}),
		"flotilla_config_schema.x":    with(map[string]any{"name": "all", "schema": "{}"}),
	}}
}

func TestANumberInPlaceOfALabelIsAnError(t *testing.T) {
	t.Parallel()
	for _, wrong := range []any{1.1, true} {
		_, diags := providertest.New(startProvider).Plan(t.Context(), stateOnlyConfiguration(map[string]any{"version": wrong}))
		if count := strings.Count(diags.String(), "put it in quotes"); count != len(stateOnlyConfiguration(nil).Resources) {
			t.Errorf("got %d errors, want one for each resource: %s", count, diags)
		}
	}
}

// Promotions are imported, because they depend on the promoted value: TestPromotionIsImportedWithItsValue.
func TestStateOnlyResourcesAreNotImported(t *testing.T) {
	t.Parallel()
	w, configuration := providertest.New(startProvider), stateOnlyConfiguration(nil)
	for address := range configuration.Resources {
		if diags := w.Import(t.Context(), configuration, address, `{"name":"x"}`); !diags.Has("Resource Import Not Implemented") {
			t.Errorf("the import of %s reports %s", address, diags)
		}
	}
}

// Names on clusters contain the first former name. A set would sort the names, and agents would prune.
func TestAClusterTypeKeepsTheOrderOfItsFormerNames(t *testing.T) {
	t.Parallel()
	const address = "flotilla_cluster_type.x"
	configuration := providertest.Configuration{Resources: map[string]providertest.Resource{address: {Attributes: map[string]any{
		"name": "till", "environment": "dev", "formerly": []any{"store", "shop"},
	}}}}
	w := providertest.New(startProvider)
	apply(t, w, configuration)
	if got, want := w.Now().Values(address)["formerly"], []any{"store", "shop"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("got formerly %v, want %v", got, want)
	}
	configuration.Resources[address].Attributes["formerly"] = []any{"shop", "store"}
	plan, diags := w.Plan(t.Context(), configuration)
	if diags.Err() != nil || plan.Empty() {
		t.Errorf("another order changes nothing: %s", diags)
	}
}
