package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
)

// previewed is a fleet whose one deployment target is rendered on some hosts.
func previewed(p *published, pin folder.Pin, hosts int, clusterType, data map[string]any) map[string]any {
	fleet := rendered(pin, tillManifests(p), map[string]any{"config_as": []any{"values"}}, nil)
	types := []any{merged(map[string]any{"name": "store", "render": "preview"}, clusterType)}
	for i := 1; i < hosts; i++ {
		types = append(types, merged(map[string]any{"name": fmt.Sprintf("store-%03d", i), "render": "preview"}, clusterType))
	}
	fleet["cluster_types"] = types
	fleet["config_containers"] = []any{map[string]any{"name": "all", "data": merged(map[string]any{"replicas": 3}, data)}}
	return fleet
}

// tillWith are tillFiles with another tag, and with another text in the place of one.
func tillWith(tag string, replace ...string) map[string]string {
	files := maps.Clone(tillFiles)
	files["values.yaml"] = strings.ReplaceAll(files["values.yaml"], "v1", tag)
	files["templates/all.yaml"] = strings.NewReplacer(replace...).Replace(files["templates/all.yaml"])
	return files
}

func TestAPlanSaysHowFinalObjectsChange(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	one := charts.publish(t, "1.2.1", tillFiles)
	for name, test := range map[string]struct {
		pin         folder.Pin
		clusterType map[string]any
		data        map[string]any
		want        []string
	}{
		"a chart with another image": {
			charts.publish(t, "1.2.2", tillWith("v2")), nil, nil,
			[]string{`Deployment till: spec.template.spec.containers[till].image, on store: till-live, by workload "till" (chart 1.2.1 -> 1.2.2)`},
		},
		"a chart with other objects and another secret": {
			charts.publish(t, "1.3.0", tillWith("v1", "name: migrate,", "name: move,", "canary-secret", "canary-other")), nil, nil,
			[]string{
				`+ Job move, on store: till-live, by workload "till" (chart 1.2.1 -> 1.3.0)`,
				`- Job migrate, on store: till-live, by workload "till" (chart 1.2.1 -> 1.3.0)`,
				`Secret till: stringData.password, on store: till-live, by workload "till" (chart 1.2.1 -> 1.3.0)`,
			},
		},
		"a chart with the same objects": {
			charts.publish(t, "1.4.0", tillFiles), nil, nil,
			[]string{`final objects: no change, on store: till-live, by workload "till" (chart 1.2.1 -> 1.4.0)`},
		},
		"a value": {
			one, nil, map[string]any{"replicas": 4},
			[]string{
				`Deployment till: spec.replicas, on store: till-live, by config container "all"`,
				`reconciler.yaml: HelmRelease spec.values.replicas, on store: till-live, by config container "all"`,
			},
		},
		"a value that the chart does not use": {
			one, nil, map[string]any{"unused": "canary-value"},
			[]string{
				`final objects: no change, on store: till-live, by config container "all"`,
				`reconciler.yaml: HelmRelease spec.values.unused (new), on store: till-live, by config container "all"`,
			},
		},
		"another chart and another version of Kubernetes": {
			charts.publish(t, "1.5.0", tillWith("v2")), map[string]any{"kubernetes_version": "1.34"}, nil,
			[]string{`Deployment till: metadata.annotations.kubernetes, spec.template.spec.containers[till].image, on store: till-live, by workload "till" (chart 1.2.1 -> 1.5.0), cluster type "store"`},
		},
	} {
		for _, reconciler := range []string{"flux", "argocd", "argocd-hub"} {
			t.Run(name+", "+reconciler, func(t *testing.T) {
				t.Parallel()
				url, w := bare(t), providertest.New(startProvider)
				how := map[string]any{"reconciler": reconciler, "kubernetes_version": "1.33"}
				apply(t, w, assigned(url, fleetOf(previewed(charts, one, 1, how, nil)), nil))
				changed := assigned(url, fleetOf(previewed(charts, test.pin, 1, merged(how, test.clusterType), test.data)), nil)
				plan, said := w.Plan(t.Context(), changed)
				if said.Err() != nil {
					t.Fatal(said)
				}
				got := linesOf(plan)
				want := slices.Concat([]string{"1 host; assignments: 1 changed, 0 added, 0 removed, 1 in all"}, test.want)
				values := map[string]string{
					"flux": "HelmRelease spec.values", "argocd": "spec.source.helm.valuesObject", "argocd-hub": "spec.template.spec.source.helm.valuesObject",
				}
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], "HelmRelease spec.values", values[reconciler])
				}
				if !slices.Equal(got, want) {
					t.Errorf("changes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if text := fmt.Sprint(plan.Change(assignment).After, said); strings.Contains(text, "canary") {
					t.Errorf("the plan has a value: %s", text)
				}
				if said := w.ApplyPlan(t.Context(), plan); said.Err() != nil { // another process
					t.Error(said)
				}
				if plan := apply(t, w, changed); !plan.Empty() {
					t.Errorf("after that it is %v", plan.Change(assignment).After)
				}
			})
		}
	}
}
