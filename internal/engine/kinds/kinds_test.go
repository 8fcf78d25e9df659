package kinds_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
)

func parseObject(t testing.TB, text string) map[string]any {
	t.Helper()
	objects, err := fleet.ReadObjects(text)
	if err != nil || len(objects) != 1 {
		t.Fatalf("got %d objects, %v", len(objects), err)
	}
	return objects[0]
}

func catalog(t testing.TB, version string) *kinds.Catalog {
	t.Helper()
	c, err := kinds.For(version)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, labels: {app: till}}
spec:
  replicas: 2
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}, creationTimestamp: null}
    spec:
      containers:
        - name: till
          image: nginx
          ports: [{containerPort: 80}]
          resources: {requests: {cpu: 0.5, memory: 1Gi}}
          readinessProbe: {httpGet: {path: /, port: http}}
`

func TestViolationsAreReportedAsByACluster(t *testing.T) {
	for name, test := range map[string]struct{ version, object, want string }{
		"valid":            {"1.34", deployment, ""},
		"wrong type":       {"1.34", strings.Replace(deployment, "replicas: 2", "replicas: two", 1), "spec.replicas must be of type integer, and is a string"},
		"unknown":          {"1.34", strings.Replace(deployment, "replicas: 2", "replica: 2", 1), "spec.replica is no field of this kind"},
		"unknown in list":  {"1.34", strings.Replace(deployment, "image:", "imagee:", 1), "spec.template.spec.containers[0].imagee is no field of this kind"},
		"required":         {"1.34", strings.Replace(deployment, "selector: {matchLabels: {app: till}}", "paused: true", 1), "spec.selector is required"},
		"quantity":         {"1.34", strings.Replace(deployment, "1Gi", "1 GB", 1), "spec.template.spec.containers[0].resources.requests.memory must be a quantity"},
		"labels":           {"1.34", strings.Replace(deployment, "labels: {app: till}}", "labels: {app: 1}}", 1), "metadata.labels.app must be of type string, and is an integer"},
		"metadata":         {"1.34", strings.Replace(deployment, "labels:", "label:", 1), "metadata.label is no field of this kind"},
		"unserved":         {"1.34", "{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: x}}", "apiVersion has no kind CronJob in Kubernetes 1.34"},
		"not yet":          {"1.29", "{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: x}}", "apiVersion has no kind ServiceCIDR in Kubernetes 1.29"},
		"unknown version":  {"", "{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: x}}", ""},
		"new field":        {"1.29", "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: x}], resources: {}}}", "spec.resources is no field of this kind"},
		"new field, newer": {"1.37", "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: x}], resources: {}}}", ""},
		"custom kind":      {"1.34", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: x}, spec: {size: x}}", ""},
		"secret":           {"1.34", "{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: 'not base64'}}", "data.a must be base64"},
		"secret wrapped":   {"1.34", "{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: \"YWJj\\nYWJj\\n\"}}", ""},
		"duration":         {"", "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x}, spec: {interval: 1d, prune: true, sourceRef: {kind: GitRepository, name: x}}}", `spec.interval must be a duration such as "10m" or "1h30m"`},
		"rule":             {"", "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x}, spec: {interval: 1h, prune: true, kubeConfig: {}, sourceRef: {kind: GitRepository, name: x}}}", "spec.kubeConfig exactly one of"},
		"enum":             {"", "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x}, spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepo, name: x}}}", "spec.sourceRef.kind must be one of"},
		"substitute":       {"", "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x}, spec: {interval: 1h, prune: true, postBuild: {substitute: {A.b: 3}}, sourceRef: {kind: GitRepository, name: x}}}", "spec.postBuild.substitute.A.b must be of type string, and is an integer"},
	} {
		t.Run(name, func(t *testing.T) {
			c := catalog(t, test.version)
			for range 2 { // the second verdict is remembered
				var got []string
				o := parseObject(t, test.object)
				for _, v := range c.Check(o) {
					got = append(got, v.Path()+" "+v.Message)
				}
				if c.Accepts(o) != (len(got) == 0) {
					t.Errorf("Accepts and Check disagree: got violations %v", got)
				}
				if all := strings.Join(got, "; "); test.want == "" && all != "" || !strings.HasPrefix(all, test.want) || len(got) > 1 {
					t.Errorf("got %q, want %q", all, test.want)
				}
			}
		})
	}
}

// TestRestrictedMetadataIsCheckedEachTime checks objects that differ only in the name.
func TestRestrictedMetadataIsCheckedEachTime(t *testing.T) {
	const template = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: NAME}}"
	for name, schema := range map[string]string{
		"rule":    "{type: object, properties: {metadata: {type: object}}, x-kubernetes-validations: [{rule: self.metadata.name == 'cluster'}]}",
		"no node": "{type: object, x-kubernetes-validations: [{rule: self.metadata.name == 'cluster'}]}",
		"pattern": "{type: object, properties: {metadata: {type: object, properties: {name: {type: string, pattern: ^cluster$}}}}}",
	} {
		for _, names := range [][]string{{"cluster", "other"}, {"other", "cluster"}} {
			definition, err := kinds.ReadDefinition(parseObject(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, schema: {openAPIV3Schema: `+schema+`}}]
`))
			if err != nil {
				t.Fatal(name, err)
			}
			c := catalog(t, "").With(definition)
			for _, objectName := range names {
				if got := c.Accepts(parseObject(t, strings.Replace(template, "NAME", objectName, 1))); got != (objectName == "cluster") {
					t.Errorf("%s: %s of %v: got accepted %v", name, objectName, names, got)
				}
			}
		}
	}
}

// Rendering checks each file of each cluster, so a repeated check must be cheap.
func TestRepeatedVerdictsNeedNoLibrary(t *testing.T) {
	c := catalog(t, "1.34")
	for name, text := range map[string]string{
		"valid":      deployment,
		"wrong type": strings.Replace(deployment, "replicas: 2", "replicas: two", 1),
		"unknown":    strings.Replace(deployment, "replicas: 2", "replica: 2", 1),
	} {
		o := parseObject(t, text)
		if allocations := testing.AllocsPerRun(10, func() { c.Accepts(o) }); allocations > 50 {
			t.Errorf("%s: got %v allocations, want at most 50", name, allocations)
		}
	}
}

func BenchmarkAccepts(b *testing.B) {
	c := catalog(b, "1.34")
	for name, text := range map[string]string{
		"Deployment":    deployment,
		"GitRepository": "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: x}, spec: {interval: 1h, url: 'https://a', ref: {branch: main}}}",
	} {
		o := parseObject(b, text)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if !c.Accepts(o) {
					b.Fatal("refused")
				}
			}
		})
		b.Run(name+"/first", func(b *testing.B) {
			for b.Loop() {
				kinds.Forget(c, o)
				c.Accepts(o)
			}
		})
	}
}
