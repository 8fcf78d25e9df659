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
func TestADigestInOtherOperations(t *testing.T) {
	t.Parallel()
	for name, reconciler := range map[string]string{"Flux": "flux", "Argo CD": "argocd", "Config Sync": "config-sync"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			w := providertest.New(startProvider)
			with := func(manifests map[string]any) providertest.Configuration {
				return assigned(repo.url, fleetOf(map[string]any{
					"workloads": registryWorkloads(manifests), "cluster_types": clusterTypesWith(reconciler),
				}), atRoot(repo))
			}
			written := func() string { return git(t, repo.url, "show", "dev:drone/till-edge/reconciler.yaml") }
			one, two := map[string]any{"digest": digestOf("1")}, map[string]any{"digest": digestOf("2")}
			apply(t, w, with(one))
			for verb, option := range map[string]providertest.Option{"a refresh": providertest.RefreshOnly(), "a destroy": providertest.Destroy()} {
				plan, said := w.Plan(t.Context(), with(two), option)
				if said.Err() != nil || verb == "a refresh" && !plan.Empty() {
					t.Errorf("%s with another digest: %v, %+v", verb, said, plan)
				}
			}
			if plan, said := w.Plan(t.Context(), with(one)); said.Err() != nil || !plan.Empty() {
				t.Errorf("the same digest: %v, %q", said, linesOf(plan))
			}
			plan, said := w.Plan(t.Context(), with(two))
			if lines := strings.Join(linesOf(plan), "\n"); said.Err() != nil || !strings.Contains(lines, "drone/till-edge") && !strings.Contains(lines, "on drone") {
				t.Fatalf("another digest: %v, %q", said, lines)
			}
			repo.change(t, "dev", func(folder string) { writeFile(t, folder+"/elsewhere.yaml", "a: b\n") })
			if said := w.ApplyPlan(t.Context(), plan); said.Err() != nil {
				t.Fatalf("late: %v", said)
			}
			if text := written(); !strings.Contains(text, digestOf("2")) || strings.Contains(text, digestOf("1")) {
				t.Errorf("written is %s", text)
			}
			apply(t, w, with(nil))
			if text := written(); strings.Contains(text, "sha256:") {
				t.Errorf("without a digest written is %s", text)
			}
		})
	}
}

// Definitions of the provider check final objects. Other operations than a plan of changes do not need them, and a plan that is
// applied late is not checked by definitions that came after it.
func TestDefinitionsInOtherOperations(t *testing.T) {
	t.Parallel()
	sized := func(size string) string { return strings.Replace(widget, "size: large", "size: "+size, 1) }
	refusing := []any{widgets}
	for _, how := range []string{"preview", "objects"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			charts, repo := newChartServer(t), bareRepository(t)
			w := providertest.New(startProvider)
			with := func(version, size string, definitions []any) providertest.Configuration {
				pin := charts.publish(t, version, map[string]string{"templates/all.yaml": sized(size)})
				manifests := map[string]any{"storage": "helm", "repo": charts.url, "chart": "till", "version": version}
				c := assigned(repo.url, fleetOf(renderedFleet(pin, manifests, nil, map[string]any{"render": how})), atRoot(repo))
				if definitions != nil {
					c.Provider = map[string]any{"custom_resource_definitions": definitions}
				}
				return c
			}
			apply(t, w, with("1.0.0", "large", nil))
			for verb, option := range map[string]providertest.Option{"a refresh": providertest.RefreshOnly(), "a destroy": providertest.Destroy()} {
				plan, said := w.Plan(t.Context(), with("1.0.0", "large", refusing), option)
				if said.Err() != nil || verb == "a refresh" && !plan.Empty() {
					t.Errorf("%s with definitions that refuse the deployed objects: %v, %+v", verb, said, plan)
				}
			}
			plan, said := w.Plan(t.Context(), with("1.0.0", "large", refusing))
			if said.Err() != nil || !plan.Empty() || !said.Has("Clusters would refuse final objects") {
				t.Errorf("deployed objects: %v, %q", said, linesOf(plan))
			}
			plan, said = w.Plan(t.Context(), with("1.0.0", "large", []any{widgets}))
			if said.Err() != nil || !plan.Empty() {
				t.Errorf("definitions alone: %v, %q", said, linesOf(plan))
			}
			late, said := w.Plan(t.Context(), with("1.1.0", "3", refusing))
			if said.Err() != nil || len(linesOf(late)) == 0 {
				t.Fatalf("valid objects: %v", said)
			}
			repo.change(t, "dev", func(folder string) { writeFile(t, folder+"/elsewhere.yaml", "a: b\n") })
			if said := w.ApplyPlan(t.Context(), late); said.Err() != nil {
				t.Errorf("late: %v", said)
			}
			if plan, said := w.Plan(t.Context(), with("1.1.0", "3", refusing)); said.Err() != nil || !plan.Empty() {
				t.Errorf("after it: %v, %q", said, linesOf(plan))
			}
			if plan, said := w.Plan(t.Context(), with("1.1.0", "3", refusing), providertest.RefreshOnly()); said.Err() != nil || !plan.Empty() {
				t.Errorf("a refresh after it: %v, %+v", said, plan)
			}
		})
	}
}
