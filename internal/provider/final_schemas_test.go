package provider_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// deploymentYAML returns a Deployment with an extra line in its spec, and one in its container.
func deploymentYAML(line, ofContainer string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: till}
spec:
  ` + line + `
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec:
      containers:
        - name: till
          image: registry.example.com/till:v1
          ` + ofContainer + "\n"
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

const widget = "\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: large}\n"

// Unknown fields are refused or dropped, depending on the agent and its version.
func TestFinalObjectsThatAClusterRefusesAreErrorsOfThePlan(t *testing.T) {
	t.Parallel()
	const refused, dropped = "Clusters would refuse final objects", "Clusters may drop fields of final objects"
	valid := deploymentYAML("replicas: 2", "ports: [{containerPort: 80}]")
	unknown := deploymentYAML("replica: 2", "ports: []")
	argo := map[string]any{"reconciler": "argocd"}
	lenient := map[string]any{
		"reconciler": "argocd",
		"parameters": map[string]any{"application": map[string]any{"syncPolicy": map[string]any{"syncOptions": []any{"Validate=false"}}}},
	}
	resized := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}], resources: {limits: {cpu: 1}}}\n"
	for name, test := range map[string]struct {
		manifests        string
		clusterType      map[string]any
		definitions      []any
		summary, message string
	}{
		"valid":        {manifests: valid},
		"a wrong type": {manifests: deploymentYAML("replicas: two", "ports: []"), summary: refused, message: `Deployment target "till-live": Deployment "till": spec.replicas must be of type integer, and is a string (schema of Kubernetes 1.37)`},
		"no selector": {
			manifests: strings.Replace(valid, "selector: {matchLabels: {app: till}}", "paused: true", 1), summary: refused, message: `Deployment "till": spec.selector is required`,
		},
		"a quantity": {
			manifests: deploymentYAML("replicas: 2", `resources: {limits: {memory: "1 GB"}}`), summary: refused,
			message: `spec.template.spec.containers[0].resources.limits.memory must be a quantity such as "500m" or "2Gi"`,
		},
		"an unknown field, and a chart of Flux": {manifests: unknown, summary: dropped, message: `Deployment "till": spec.replica is no field of this kind`},
		"an unknown field and Argo CD":          {manifests: unknown, clusterType: argo, summary: refused, message: "spec.replica is no field of this kind"},
		"an unknown field and Validate=false":   {manifests: unknown, clusterType: lenient, summary: dropped, message: "spec.replica is no field of this kind"},
		"a removed API":                         {manifests: "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\n", clusterType: map[string]any{"kubernetes_version": "1.34"}, summary: refused, message: `CronJob "a": apiVersion has no kind CronJob in Kubernetes 1.34`},
		"a removed API without a version":       {manifests: "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\n"},
		"a field of a newer version":            {manifests: resized, clusterType: map[string]any{"reconciler": "argocd", "kubernetes_version": "1.29"}, summary: refused, message: "spec.resources is no field of this kind (schema of Kubernetes 1.29)"},
		"the field in that version":             {manifests: resized, clusterType: map[string]any{"reconciler": "argocd", "kubernetes_version": "1.36"}},
		"an unknown field and a newer cluster":  {manifests: unknown, clusterType: map[string]any{"reconciler": "argocd", "kubernetes_version": "1.99"}, summary: dropped, message: "spec.replica is no field of this kind"},
		"a kind without a definition":           {manifests: widget},
		"a definition among the objects":        {manifests: widgets + "---" + widget, summary: refused, message: `Widget "w": spec.size must be of type integer, and is a string (schema of its CustomResourceDefinition)`},
		"a definition of the provider":          {manifests: widget, definitions: []any{widgets}, summary: refused, message: `Widget "w": spec.size must be of type integer, and is a string`},
		"an unserved version": {
			manifests: strings.Replace(widget, "example.com/v1", "example.com/v2", 1), definitions: []any{widgets}, summary: refused,
			message: `Widget "w": apiVersion is not served by the CustomResourceDefinition of Widget, which has v1`,
		},
		"an invalid definition": {
			manifests: strings.Replace(widgets, "size: {type: integer}", "size: {}", 1), summary: refused, message: `CustomResourceDefinition "widgets.example.com": version "v1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, how := range []string{"preview", "objects"} {
				charts := newChartServer(t)
				pin := charts.publish(t, "1.0.0", map[string]string{"templates/all.yaml": test.manifests})
				manifests := map[string]any{"storage": "helm", "repo": charts.url, "chart": "till", "version": "1.0.0"}
				clusterType := mergeMaps(map[string]any{"render": how}, test.clusterType)
				if how == "objects" && clusterType["reconciler"] == "argocd" && strings.Contains(test.manifests, "kind: Pod") {
					continue
				}
				configuration := assigned(bare(t), fleetOf(renderedFleet(pin, manifests, nil, clusterType)), nil)
				if test.definitions != nil {
					configuration.Provider = map[string]any{"custom_resource_definitions": test.definitions}
				}
				_, diags := providertest.New(startProvider).Plan(t.Context(), configuration)
				text := strings.Join(strings.Fields(diags.String()), " ")
				if hasFailed := diags.Err() != nil; hasFailed != (test.summary == refused) || !strings.Contains(text, test.summary) ||
					!strings.Contains(text, test.message) {
					t.Errorf("%s: got diagnostics %s", how, text)
				}
				if test.summary == "" && (strings.Contains(text, refused) || strings.Contains(text, dropped)) {
					t.Errorf("%s: got diagnostics %s", how, text)
				}
			}
		})
	}
}

func TestADefinitionOfAnotherWorkloadChecksFinalObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pins := map[string]folder.Pin{
		"1.0.0": charts.publish(t, "1.0.0", map[string]string{"templates/all.yaml": widgets}),
		"2.0.0": charts.publish(t, "2.0.0", map[string]string{"templates/all.yaml": widget}),
	}
	target := func(version string) map[string]any {
		return map[string]any{"storage": "helm", "repo": charts.url, "chart": "till", "version": version}
	}
	both := renderedFleet(folder.Pin{}, target("2.0.0"), nil, map[string]any{"render": "preview"})
	other := renderedFleet(folder.Pin{}, target("1.0.0"), nil, nil)
	workload := maps.Clone(other["workloads"].([]any)[0].(map[string]any))
	workload["name"] = "definitions"
	both["workloads"] = append(both["workloads"].([]any), workload)
	resolved := artifact.Resolved{}
	for target, version := range map[string]string{"till-live": "2.0.0", "definitions-live": "1.0.0"} {
		resolved[target] = artifact.Entry{
			Manifests: folder.Manifests{Storage: "helm", Repo: charts.url, Chart: "till", Version: version}, Pin: pins[version],
		}
	}
	artifacts, err := resolved.Encode()
	if err != nil {
		t.Fatal(err)
	}
	both["artifacts"] = artifacts
	_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(both), nil))
	if text := strings.Join(strings.Fields(diags.String()), " "); diags.Err() == nil ||
		!strings.Contains(text, `Deployment target "till-live": Widget "w": spec.size must be of type integer`) {
		t.Errorf("got diagnostics %s", text)
	}
}

// Another version of Kubernetes must not stop a fleet without changes.
func TestDeployedObjectsThatAClusterRefusesAreWarnings(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.0.0", map[string]string{
		"templates/all.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}], resources: {limits: {cpu: 1}}}\n",
	})
	url, w := bare(t), providertest.New(startProvider)
	with := func(kubernetes string) providertest.Configuration {
		manifests := map[string]any{"storage": "helm", "repo": charts.url, "chart": "till", "version": "1.0.0"}
		clusterType := map[string]any{"render": "preview", "reconciler": "argocd", "kubernetes_version": kubernetes}
		return assigned(url, fleetOf(renderedFleet(pin, manifests, nil, clusterType)), nil)
	}
	apply(t, w, with("1.36"))
	_, diags := w.Plan(t.Context(), with("1.29"))
	want := `Warning: Clusters would refuse final objects`
	if text := strings.Join(strings.Fields(diags.String()), " "); diags.Err() != nil || !strings.Contains(text, want) ||
		!strings.Contains(text, `Pod "a": spec.resources is no field of this kind`) {
		t.Errorf("got diagnostics %s", text)
	}
}
