package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const reconcilerChanges = "Reconciler changes"

// fleetReconciledBy returns a fleet whose cluster types have these reconcilers, in order. The last reconciler is for the rest.
// level is a value of the config container.
func fleetReconciledBy(level any, names []string, reconcilers ...string) providertest.Call {
	var types []any
	for i, name := range names {
		types = append(types, map[string]any{"name": name, "reconciler": reconcilers[min(i, len(reconcilers)-1)]})
	}
	return fleetOf(map[string]any{
		"cluster_types": types,
		"clusters":      []any{map[string]any{"name": "one", "cluster_type": names[0]}},
		"target_policies": []any{
			map[string]any{
				"name":                       "types",
				"deployment_target_selector": map[string]any{"expression": "!edge"},
				"cluster_type_selector":      map[string]any{},
			},
			map[string]any{
				"name":                       "clusters",
				"deployment_target_selector": map[string]any{"expression": "edge=true"},
				"cluster_selector":           map[string]any{},
			},
		},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": level}}},
		"templates": []any{
			map[string]any{"name": "own-flux", "type": "reconciler", "manifests": []any{
				"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: \"{{ .Name }}\", namespace: flux-system}\nspec: {interval: 1m, prune: true, path: ./, sourceRef: {kind: GitRepository, name: teams}}\n",
			}},
			map[string]any{"name": "own-objects", "type": "reconciler", "manifests": []any{
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\", namespace: \"{{ .Namespace }}\"}\n",
			}},
		},
	})
}

func TestAPlanWarnsOfAnotherReconciler(t *testing.T) {
	t.Parallel()
	few := []string{"drone", "large"}
	for name, test := range map[string]struct {
		before, after providertest.Call
		wants         []string
	}{
		"from Flux to Argo CD": {fleetReconciledBy("info", few, "flux"), fleetReconciledBy("info", few, "argocd"), []string{
			`The reconciler of 3 hosts changes from "flux" to "argocd": clusters/one, drone, large. An agent of Flux that still follows the folders then prunes its objects`,
		}},
		"from Argo CD to Flux":          {fleetReconciledBy("info", few, "argocd"), fleetReconciledBy("info", few, "flux"), []string{`from "argocd" to "flux": clusters/one, drone, large. An agent of Argo CD`}},
		"to an Argo CD on a hub":        {fleetReconciledBy("info", few, "argocd"), fleetReconciledBy("info", few, "argocd", "argocd-hub"), []string{`The reconciler of 1 host changes from "argocd" to "argocd-hub": large.`}},
		"to Zarf, which has no agent":   {fleetReconciledBy("info", few, "flux"), fleetReconciledBy("info", few, "zarf"), []string{`from "flux" to "zarf"`}},
		"from Zarf, which has no agent": {fleetReconciledBy("info", few, "zarf"), fleetReconciledBy("info", few, "flux"), nil},
		"two reconcilers swapped":       {fleetReconciledBy("info", few, "flux", "argocd"), fleetReconciledBy("info", few, "argocd", "flux"), []string{`from "argocd" to "flux": large.`, `from "flux" to "argocd": clusters/one, drone.`}},
		"to a template":                 {fleetReconciledBy("info", few, "flux"), fleetReconciledBy("info", few, "own-objects"), []string{`from "flux" to "own-objects"`}},
		"to a template for Flux":        {fleetReconciledBy("info", few, "flux"), fleetReconciledBy("info", few, "own-flux"), nil},
		"from a template for Flux":      {fleetReconciledBy("info", few, "own-flux"), fleetReconciledBy("info", few, "argocd"), []string{`from "flux" to "argocd"`}},
		"only another value":            {fleetReconciledBy("info", few, "flux"), fleetReconciledBy("debug", few, "flux"), nil},
		"an unknown value":              {fleetReconciledBy("info", few, "flux"), fleetReconciledBy(providertest.Unknown{}, few, "argocd"), []string{`The reconciler of 3 hosts changes from "flux" to "argocd"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := applyThenPlan(t, test.before, test.after)
			var details []string // one for each title
			for _, one := range diags {
				if one.Summary == reconcilerChanges {
					details = append(details, strings.Join(strings.Fields(one.Detail), " "))
				}
			}
			if len(details) != min(1, len(test.wants)) {
				t.Fatalf("got %d warnings for %d texts:\n%s", len(details), len(test.wants), diags)
			}
			for _, want := range test.wants {
				if !strings.Contains(details[0], want) {
					t.Errorf("the warning does not say %q:\n%s", want, details[0])
				}
			}
		})
	}
}

func TestTheWarningOfAnotherReconcilerIsOneForManyHosts(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("t%02d", i))
	}
	_, diags := applyThenPlan(t, fleetReconciledBy("info", many, "flux"), fleetReconciledBy("info", many, "argocd"))
	want := `The reconciler of 13 hosts changes from "flux" to "argocd": clusters/one, t00, t01, t02, t03, t04, t05, t06, t07, t08 and 3 more.`
	if strings.Count(diags.String(), want) != 1 || strings.Count(diags.String(), reconcilerChanges) != 1 {
		t.Errorf("the plan does not say exactly once %q:\n%s", want, diags)
	}
}

// The warning compares with the folders. A lost state or a rollout under way does not hide it.
func TestTheWarningOfAnotherReconcilerFollowsTheFolders(t *testing.T) {
	t.Parallel()
	url, few := bare(t), []string{"drone", "large"}
	flux, argo := fleetReconciledBy("info", few, "flux"), fleetReconciledBy("info", few, "argocd")
	apply(t, providertest.New(startProvider), assigned(url, flux, nil))
	imported := providertest.New(startProvider)
	if diags := imported.Import(t.Context(), assigned(url, flux, nil), assignment, url+"#dev:clusters/all:dev"); diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	if _, diags := mustPlan(t, imported, assigned(url, argo, nil)); !diags.Has(reconcilerChanges) {
		t.Errorf("after an import the plan says %s", diags)
	}

	r := newRings(t)
	configuration := func() providertest.Configuration {
		argument := ringFleet("1", nil)
		for _, one := range argument["cluster_types"].([]any) {
			one.(map[string]any)["reconciler"] = "argocd"
		}
		return assigned(
			r.url,
			providertest.Call{Function: "fleet", Arguments: []any{argument}},
			map[string]any{"rollout": r.rollout, "evidence": r.evidence()},
		)
	}
	for _, host := range []string{"canary", "region"} {
		want := fmt.Sprintf(`The reconciler of 1 host changes from "flux" to "argocd": %s.`, host)
		if _, diags := mustPlan(t, r.w, configuration()); !strings.Contains(diags.String(), want) {
			t.Errorf("the plan of the stage does not say %q:\n%s", want, diags)
		}
		apply(t, r.w, configuration())
		if _, diags := mustPlan(t, r.w, configuration()); diags.Has(reconcilerChanges) {
			t.Errorf("a plan that waits says %s", diags)
		}
		r.report(host, verdict.Ready)
	}
}
