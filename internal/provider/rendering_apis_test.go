package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// apiTemplate is a ConfigMap that shows which APIs a chart finds.
func apiTemplate(apis ...string) string {
	var data strings.Builder
	for i, api := range apis {
		fmt.Fprintf(&data, "  a%d: %q\n", i, fmt.Sprintf("%s {{ .Capabilities.APIVersions.Has %q }}", api, api))
	}
	return strings.ReplaceAll("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: asked}\ndata:\n"+data.String(), `\"`, "`")
}

// With Flux, charts see the APIs of the clusters. With Argo CD, they also see the APIs of `helm template`.
func TestAChartSeesTheAPIsOfItsClusters(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	apis := []string{
		"networking.k8s.io/v1", "networking.k8s.io/v1/Ingress",
		"policy/v1beta1", "policy/v1beta1/PodSecurityPolicy", "batch/v1beta1/CronJob", "autoscaling/v2beta2",
		"resource.k8s.io/v1/ResourceClaim", "resource.k8s.io/v1beta2", "monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor",
		"cert-manager.io/v1", "cert-manager.io/v1/Issuer",
	}
	pin := charts.publish(t, "1.0.0", map[string]string{"templates/all.yaml": apiTemplate(apis...)})
	listed := []any{"cert-manager.io/v1", "monitoring.coreos.com/v1/ServiceMonitor"}
	always := []string{
		"networking.k8s.io/v1", "networking.k8s.io/v1/Ingress",
		"monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor", "cert-manager.io/v1",
	}
	old := []string{"policy/v1beta1", "policy/v1beta1/PodSecurityPolicy", "batch/v1beta1/CronJob", "autoscaling/v2beta2"}
	for _, test := range []struct {
		reconciler, version string
		further             []string
	}{
		{"flux", "1.24", old},
		{"flux", "1.33", nil},
		{"flux", "v1.34.2+k3s1", []string{"resource.k8s.io/v1/ResourceClaim"}},
		{"argocd", "1.24", append(slices.Clone(old), "resource.k8s.io/v1beta2")},
		{"argocd", "1.34", []string{"policy/v1beta1", "resource.k8s.io/v1/ResourceClaim", "resource.k8s.io/v1beta2"}},
		{"argocd-hub", "1.33", []string{"policy/v1beta1", "resource.k8s.io/v1beta2"}},
	} {
		clusterType := map[string]any{
			"render": "preview", "reconciler": test.reconciler, "kubernetes_version": test.version, "api_versions": listed,
		}
		got, _, messages := readFinalObjects(t, renderedFleet(pin, tillManifests(charts), nil, clusterType))
		text := strings.Join(slices.Collect(maps.Values(got)), "")
		for _, api := range apis {
			has := slices.Contains(always, api) || slices.Contains(test.further, api)
			if want := fmt.Sprintf("%s %v\n", api, has); !strings.Contains(text, want) {
				t.Errorf("%s, Kubernetes %s: the object lacks %q:\n%s\nmessages: %s", test.reconciler, test.version, want, text, messages)
			}
		}
	}
}

// The APIs in an Application replace the APIs of the cluster, so a plan does not warn of unlisted APIs.
func TestAnApplicationNamesAPIs(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	template := apiTemplate("networking.k8s.io/v1/Ingress", "example.com/v1", "named.example.com/v1")
	pin := charts.publish(t, "1.0.0", map[string]string{"templates/all.yaml": template})
	helm := map[string]any{"apiVersions": []any{"named.example.com/v1"}}
	fleet := renderedFleet(pin, tillManifests(charts), nil, map[string]any{
		"render": "preview", "reconciler": "argocd", "kubernetes_version": "1.34", "api_versions": []any{"example.com/v1"},
		"parameters": map[string]any{"application": map[string]any{"source": map[string]any{"helm": helm}}},
	})
	got, _, messages := readFinalObjects(t, fleet)
	text := strings.Join(slices.Collect(maps.Values(got)), "")
	for _, want := range []string{"networking.k8s.io/v1/Ingress false\n", " example.com/v1 false\n", "named.example.com/v1 true\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the object lacks %q:\n%s\nmessages: %s", want, text, messages)
		}
	}
	_, planned := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
	if strings.Contains(fmt.Sprint(planned), "api_versions") {
		t.Errorf("got %s", planned)
	}
}

// A chart can range over, join and slice the list.
func TestAChartReadsTheListOfAPIs(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.0.0", map[string]string{"templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: listed}
data:
  has: "{{ has "apps/v1/Deployment" .Capabilities.APIVersions }}"
  text: "{{ contains "\"batch/v1\"" (toJson .Capabilities.APIVersions) }}"
  yaml: "{{ contains "- batch/v1\n" (toYaml .Capabilities) }}"
  joined: "{{ join "," .Capabilities.APIVersions | splitList "," | has "v1/Pod" }}"
  ranged: "{{ range .Capabilities.APIVersions }}{{ if eq . "example.com/v1" }}true{{ end }}{{ end }}"
  sliced: "{{ (slice .Capabilities.APIVersions 0 1).Has "example.com/v1" }}"
  version: "{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.KubeVersion.GitVersion }}"
  helm: "{{ hasPrefix "v" .Capabilities.HelmVersion.Version }}"
`})
	attributes := map[string]any{"render": "preview", "kubernetes_version": "1.34", "api_versions": []any{"example.com/v1"}}
	got, _, messages := readFinalObjects(t, renderedFleet(pin, tillManifests(charts), nil, attributes))
	text := strings.Join(slices.Collect(maps.Values(got)), "")
	for _, want := range []string{
		`has: "true"`, `text: "true"`, `yaml: "true"`, `joined: "true"`, `ranged: "true"`, `sliced: "false"`, "version: 34 v1.34\n", `helm: "true"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the object lacks %q:\n%s\nmessages: %s", want, text, messages)
		}
	}
}

func TestAPlanWarnsOfUnlistedAPIs(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.0.0", map[string]string{
		"values.yaml": "password: a\n",
		"templates/all.yaml": apiTemplate("networking.k8s.io/v1/Ingress", "policy/v1beta1", "autoscaling/v9", "example.com/v1", "example.com/v1/Till",
			"gateway.networking.k8s.io/v1", "no version of an API", "example.com/v1/misspelt") +
			"{{ if .Release.IsUpgrade }}{{ if .Capabilities.APIVersions.Has \"later.example.com/v1\" }}never{{ end }}{{ end }}\n" +
			"{{ if false }}{{ .Capabilities.APIVersions.Has \"never.example.com/v1\" }}{{ end }}\n",
	})
	const summary = "Charts ask for APIs that are not listed"
	const till, gateway, later = "example.com/v1/Till", "gateway.networking.k8s.io/v1", "later.example.com/v1"
	wantLine := func(api string) string { return api + `: 1 chart ("till"), 5 cluster types ("a", "b", "c" and 2 more)` }
	for _, test := range []struct {
		reconciler, render string
		listed             []any
		want               []string
	}{
		{"flux", "preview", []any{"example.com/v1"}, []string{wantLine(till), wantLine(gateway), wantLine(later)}},
		{"flux", "objects", nil, []string{wantLine("example.com/v1"), wantLine(till), wantLine(gateway), wantLine(later)}},
		{"argocd", "preview", []any{till}, []string{wantLine(gateway)}},
		{"argocd", "objects", []any{till, gateway}, nil},
		{"flux", "pointers", nil, nil},
	} {
		var clusterTypes []any
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			one := map[string]any{"name": name, "reconciler": test.reconciler, "render": test.render, "kubernetes_version": "1.34"}
			if test.listed != nil {
				one["api_versions"] = test.listed
			}
			clusterTypes = append(clusterTypes, one)
		}
		fleet := mergeMaps(renderedFleet(pin, tillManifests(charts), nil, nil), map[string]any{"cluster_types": clusterTypes})
		w, configuration := providertest.New(startProvider), assigned(bare(t), fleetOf(fleet), nil)
		_, diags := w.Plan(t.Context(), configuration)
		var lines []string
		for _, one := range diags {
			if one.Summary == summary {
				detail, _, _ := strings.Cut(one.Detail, ".\n\nMore:")
				_, list, _ := strings.Cut(detail, "\n")
				lines = append(lines, strings.Split(list, "\n")...)
			}
		}
		if diags.Err() != nil || !slices.Equal(lines, test.want) {
			t.Errorf("%s, %s: the warning has %q, want %q; messages: %v", test.reconciler, test.render, lines, test.want, diags)
		}
		if _, diags := w.Apply(t.Context(), configuration); diags.Err() != nil {
			t.Fatal(diags)
		}
		if _, diags := w.Plan(t.Context(), configuration); strings.Contains(fmt.Sprint(diags), summary) {
			t.Errorf("%s, %s: a plan that changes nothing says %v", test.reconciler, test.render, diags)
		}
	}
}

// The warning lists ten APIs. A chart that asks for more than 200 fails.
func TestTheWarningOfAPIsStaysShort(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	publishAsking := func(version string, number int) folder.Pin {
		return charts.publish(t, version, map[string]string{"templates/all.yaml": fmt.Sprintf(
			"{{ range until %d }}{{ if $.Capabilities.APIVersions.Has (printf \"a%%03d.example.com/v1\" .) }}never{{ end }}{{ end }}\n", number)})
	}
	plan := func(pin folder.Pin) string {
		fleet := fleetOf(renderedFleet(pin, tillManifests(charts), nil, map[string]any{"render": "preview"}))
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleet, nil))
		return fmt.Sprint(diags)
	}
	messages := plan(publishAsking("1.0.0", 200))
	if strings.Count(messages, "example.com/v1: 1 chart") != 10 || !strings.Contains(messages, "… and 190 more") {
		t.Errorf("got %s", messages)
	}
	if messages := plan(publishAsking("1.0.1", 201)); !strings.Contains(messages, "asks for more than 200 API versions") {
		t.Errorf("got %s", messages)
	}
}
