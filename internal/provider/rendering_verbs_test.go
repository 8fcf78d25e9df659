package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// A saved plan that is applied where the chart cannot be had writes nothing; what needs no chart goes on without it.
func TestAPreviewThroughOtherVerbs(t *testing.T) {
	useNewCache(t)
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	url, w := bare(t), providertest.New(startProvider)
	with := func(replicas int) providertest.Configuration {
		fleet := renderedFleet(pin, tillManifests(charts), map[string]any{"render": "preview"}, nil)
		fleet["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"replicas": replicas}}}
		configuration := assigned(url, fleetOf(fleet), nil)
		second := assigned(url, fleetOf(fleet), map[string]any{
			"name": "other", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/other"},
		})
		configuration.Resources["flotilla_assignment.other"] = second.Resources[assignment]
		return configuration
	}
	apply(t, w, with(3))
	if charts.fetched != 1 {
		t.Errorf("two assignments in one apply fetched the chart %d times", charts.fetched)
	}
	late, said := w.Plan(t.Context(), with(4))
	if said.Err() != nil {
		t.Fatal(said)
	}
	commits := func() string { return git(t, filepath.FromSlash(url), "rev-list", "--count", "dev") }
	before := commits()

	useNewCache(t) // another machine
	down := func(is bool) {
		charts.mutex.Lock()
		defer charts.mutex.Unlock()
		charts.isDown = is
	}
	down(true)
	if said := fmt.Sprint(w.ApplyPlan(t.Context(), late)); !strings.Contains(said, "Manifests cannot be rendered") ||
		!strings.Contains(said, charts.url) ||
		commits() != before {
		t.Errorf("a late apply says %s, and there are %s commits after %s", said, commits(), before)
	}
	for verb, options := range map[string][]providertest.Option{"a refresh": {providertest.RefreshOnly()}, "a destroy": {providertest.Destroy()}} {
		if _, said := w.Plan(t.Context(), with(3), options...); said.Err() != nil {
			t.Errorf("the plan of %s says %s", verb, said)
		}
	}
	down(false)
	apply(t, w, with(4))
	if plan, said := w.Plan(t.Context(), with(4)); said.Err() != nil || !plan.Empty() {
		t.Errorf("after that the plan is not empty: %s", said)
	}
	down(true)
	apply(t, w, with(4), providertest.Destroy())
}
