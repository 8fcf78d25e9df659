package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// digestOf is a digest whose digits are all the same.
func digestOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// A digest of manifests is part of the fleet: refreshes and destroys do not need it, and a plan that is applied late writes the digest
// that it showed.
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
				t.Errorf("the same digest: %v, %q", diags, linesOf(plan))
			}
			plan, diags := w.Plan(t.Context(), configuration(two))
			if lines := strings.Join(linesOf(plan), "\n"); diags.Err() != nil || !strings.Contains(lines, "drone/till-edge") && !strings.Contains(lines, "on drone") {
				t.Fatalf("another digest: %v, %q", diags, lines)
			}
			repo.change(t, "dev", func(folder string) { writeFile(t, folder+"/elsewhere.yaml", "a: b\n") })
			if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
				t.Fatalf("late: %v", diags)
			}
			if text := readReconciler(); !strings.Contains(text, digestOf("2")) || strings.Contains(text, digestOf("1")) {
				t.Errorf("written is %s", text)
			}
			apply(t, w, configuration(nil))
			if text := readReconciler(); strings.Contains(text, "sha256:") {
				t.Errorf("without a digest written is %s", text)
			}
		})
	}
}

// Definitions of the provider check final objects. Other operations than a plan of changes do not need them, and a plan that is
// applied late is not checked by definitions that came after it.
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
				t.Errorf("deployed objects: %v, %q", diags, linesOf(plan))
			}
			plan, diags = w.Plan(t.Context(), configuration("1.0.0", "large", []any{widgets}))
			if diags.Err() != nil || !plan.Empty() {
				t.Errorf("definitions alone: %v, %q", diags, linesOf(plan))
			}
			late, diags := w.Plan(t.Context(), configuration("1.1.0", "3", refusing))
			if diags.Err() != nil || len(linesOf(late)) == 0 {
				t.Fatalf("valid objects: %v", diags)
			}
			repo.change(t, "dev", func(folder string) { writeFile(t, folder+"/elsewhere.yaml", "a: b\n") })
			if diags := w.ApplyPlan(t.Context(), late); diags.Err() != nil {
				t.Errorf("late: %v", diags)
			}
			if plan, diags := w.Plan(t.Context(), configuration("1.1.0", "3", refusing)); diags.Err() != nil || !plan.Empty() {
				t.Errorf("after it: %v, %q", diags, linesOf(plan))
			}
			if plan, diags := w.Plan(t.Context(), configuration("1.1.0", "3", refusing), providertest.RefreshOnly()); diags.Err() != nil || !plan.Empty() {
				t.Errorf("a refresh after it: %v, %+v", diags, plan)
			}
		})
	}
}
