package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// A saved plan without access to the chart writes nothing. Refresh and destroy need no chart.
func TestAPreviewThroughEachOperation(t *testing.T) {
	useNewCache(t)
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	url, w := bare(t), providertest.New(startProvider)
	configure := func(replicas int) providertest.Configuration {
		fleet := renderedFleet(pin, tillManifests(charts), map[string]any{"render": "preview"}, nil)
		fleet["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"replicas": replicas}}}
		configuration := assigned(url, fleetOf(fleet), nil)
		second := assigned(url, fleetOf(fleet), map[string]any{
			"name": "other", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/other"},
		})
		configuration.Resources["flotilla_assignment.other"] = second.Resources[assignment]
		return configuration
	}
	apply(t, w, configure(3))
	if charts.fetched != 1 {
		t.Errorf("two assignments in one apply fetched the chart %d times", charts.fetched)
	}
	late, diags := w.Plan(t.Context(), configure(4))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	commits := func() string { return git(t, filepath.FromSlash(url), "rev-list", "--count", "dev") }
	before := commits()

	useNewCache(t) // another machine
	setDown := func(isDown bool) {
		charts.mutex.Lock()
		defer charts.mutex.Unlock()
		charts.isDown = isDown
	}
	setDown(true)
	if messages := fmt.Sprint(w.ApplyPlan(t.Context(), late)); !strings.Contains(messages, "Manifests cannot be rendered") ||
		!strings.Contains(messages, charts.url) ||
		commits() != before {
		t.Errorf("a late apply says %s, and makes %s commits of %s", messages, commits(), before)
	}
	for verb, options := range map[string][]providertest.Option{"a refresh": {providertest.RefreshOnly()}, "a destroy": {providertest.Destroy()}} {
		if _, diags := w.Plan(t.Context(), configure(3), options...); diags.Err() != nil {
			t.Errorf("the plan of %s says %s", verb, diags)
		}
	}
	setDown(false)
	apply(t, w, configure(4))
	if plan, diags := w.Plan(t.Context(), configure(4)); diags.Err() != nil || !plan.Empty() {
		t.Errorf("the second plan is not empty: %s", diags)
	}
	setDown(true)
	apply(t, w, configure(4), providertest.Destroy())
}
