package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func digestOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// Refreshes and destroys ignore a new digest of manifests. A late apply writes the digest of its plan.
func TestDigestsInRefreshDestroyAndLateApply(t *testing.T) {
	t.Parallel()
	for name, reconciler := range map[string]string{"Flux": "flux", "Argo CD": "argocd", "Config Sync": "config-sync"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			w := providertest.New(startProvider)
			configuration := func(manifests map[string]any) providertest.Configuration {
				return assigned(repo.url, fleetOf(map[string]any{
					"workloads": registryWorkloads(manifests), "cluster_types": clusterTypesWith(reconciler),
				}), atRoot(repo))
			}
			readReconciler := func() string { return git(t, repo.url, "show", "dev:drone/till-edge/reconciler.yaml") }
			one, two := map[string]any{"digest": digestOf("1")}, map[string]any{"digest": digestOf("2")}
			apply(t, w, configuration(one))
			for verb, option := range map[string]providertest.Option{"a refresh": providertest.RefreshOnly(), "a destroy": providertest.Destroy()} {
				plan, diags := w.Plan(t.Context(), configuration(two), option)
				if diags.Err() != nil || verb == "a refresh" && !plan.Empty() {
					t.Errorf("%s with another digest: %v, %+v", verb, diags, plan)
				}
			}
			if plan, diags := w.Plan(t.Context(), configuration(one)); diags.Err() != nil || !plan.Empty() {
				t.Errorf("the plan of the same digest is not empty: %v, %q", diags, linesOf(plan))
			}
			plan, diags := w.Plan(t.Context(), configuration(two))
			if lines := strings.Join(linesOf(plan), "\n"); diags.Err() != nil || !strings.Contains(lines, "drone/till-edge") && !strings.Contains(lines, "on drone") {
				t.Fatalf("the plan of another digest does not name the host: %v, %q", diags, lines)
			}
			repo.change(t, "dev", func(folder string) { writeFile(t, folder+"/elsewhere.yaml", "a: b\n") })
			if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
				t.Fatalf("the late apply fails: %v", diags)
			}
			if text := readReconciler(); !strings.Contains(text, digestOf("2")) || strings.Contains(text, digestOf("1")) {
				t.Errorf("got %s, want the second digest alone", text)
			}
			apply(t, w, configuration(nil))
			if text := readReconciler(); strings.Contains(text, "sha256:") {
				t.Errorf("got %s, want no digest", text)
			}
		})
	}
}

// Only plans of changes check final objects by the provider's definitions.
func TestDefinitionsInRefreshDestroyAndLateApply(t *testing.T) {
	t.Parallel()
	widgetOfSize := func(size string) string { return strings.Replace(widget, "size: large", "size: "+size, 1) }
	refusing := []any{widgets}
	for _, mode := range []string{"preview", "objects"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			charts, repo := newChartServer(t), bareRepository(t)
			w := providertest.New(startProvider)
			configuration := func(version, size string, definitions []any) providertest.Configuration {
				pin := charts.publish(t, version, map[string]string{"templates/all.yaml": widgetOfSize(size)})
				manifests := map[string]any{"storage": "helm", "repo": charts.url, "chart": "till", "version": version}
				c := assigned(repo.url, fleetOf(renderedFleet(pin, manifests, nil, map[string]any{"render": mode})), atRoot(repo))
				if definitions != nil {
					c.Provider = map[string]any{"custom_resource_definitions": definitions}
				}
				return c
			}
			apply(t, w, configuration("1.0.0", "large", nil))
			for verb, option := range map[string]providertest.Option{"a refresh": providertest.RefreshOnly(), "a destroy": providertest.Destroy()} {
				plan, diags := w.Plan(t.Context(), configuration("1.0.0", "large", refusing), option)
				if diags.Err() != nil || verb == "a refresh" && !plan.Empty() {
					t.Errorf("%s with definitions that refuse the deployed objects: %v, %+v", verb, diags, plan)
				}
			}
			plan, diags := w.Plan(t.Context(), configuration("1.0.0", "large", refusing))
			if diags.Err() != nil || !plan.Empty() || !diags.Has("Clusters would refuse final objects") {
				t.Errorf("the plan does not warn of the deployed objects alone: %v, %q", diags, linesOf(plan))
			}
			plan, diags = w.Plan(t.Context(), configuration("1.0.0", "large", []any{widgets}))
			if diags.Err() != nil || !plan.Empty() {
				t.Errorf("a change of the definitions alone is planned: %v, %q", diags, linesOf(plan))
			}
			late, diags := w.Plan(t.Context(), configuration("1.1.0", "3", refusing))
			if diags.Err() != nil || len(linesOf(late)) == 0 {
				t.Fatalf("the plan of valid objects fails or is empty: %v", diags)
			}
			repo.change(t, "dev", func(folder string) { writeFile(t, folder+"/elsewhere.yaml", "a: b\n") })
			if diags := w.ApplyPlan(t.Context(), late); diags.Err() != nil {
				t.Errorf("the late apply fails: %v", diags)
			}
			if plan, diags := w.Plan(t.Context(), configuration("1.1.0", "3", refusing)); diags.Err() != nil || !plan.Empty() {
				t.Errorf("the plan after the late apply is not empty: %v, %q", diags, linesOf(plan))
			}
			if plan, diags := w.Plan(t.Context(), configuration("1.1.0", "3", refusing), providertest.RefreshOnly()); diags.Err() != nil || !plan.Empty() {
				t.Errorf("a refresh after the late apply finds changes: %v, %+v", diags, plan)
			}
		})
	}
}
