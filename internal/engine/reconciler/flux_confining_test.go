package reconciler_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

func TestControllersOfFluxAreConfinedByTheirArguments(t *testing.T) {
	t.Parallel()
	confinement := reconciler.Named("flux").Agent.Confinement
	for _, test := range []struct{ deployment, missing string }{
		{
			`{metadata: {name: kustomize-controller}, spec: {template: {spec: {containers: [{name: manager, image: "ghcr.io/fluxcd/kustomize-controller:v1.9.5"}]}}}}`,
			"[--default-service-account=kustomize-controller --no-cross-namespace-refs=true --no-remote-bases=true]",
		},
		{ // a shard with its own namespace and account
			`{metadata: {name: shard-1, namespace: gitops}, spec: {template: {spec: {serviceAccountName: appliers, containers: [` +
				`{name: proxy, image: proxy}, {name: manager, image: "mirror/helm-controller@sha256:01"}]}}}}`,
			"[--default-service-account=appliers --no-cross-namespace-refs=true]",
		},
		{ // an image with another name
			`{metadata: {name: a, labels: {app.kubernetes.io/component: notification-controller}}, spec: {template: {spec: {containers: [{image: b}]}}}}`,
			"[--no-cross-namespace-refs=true]",
		},
		{
			`{metadata: {name: image-automation-controller}, spec: {template: {spec: {containers: [{name: proxy}, {name: manager, args: [--no-cross-namespace-refs]}]}}}}`,
			"[]",
		},
		{ // the last flag wins, and flags may be in the command
			`{metadata: {name: kustomize-controller}, spec: {template: {spec: {containers: [{command: [run, --default-service-account, default, ` +
				`--no-remote-bases=true], args: [--no-cross-namespace-refs=true, --no-cross-namespace-refs=false]}]}}}}`,
			"[--no-cross-namespace-refs=true]",
		},
		{`{metadata: {name: kustomize-controller}, spec: {template: {spec: {containers: [{args: [--default-service-account=, --no-cross-namespace-refs, --no-remote-bases]}]}}}}`,
			"[--default-service-account=kustomize-controller]"},
		{`{metadata: {name: source-controller}, spec: {template: {spec: {containers: [{image: "ghcr.io/fluxcd/source-controller:v1"}]}}}}`, "[]"},
		{`{metadata: {name: kustomize-controller}, spec: {template: {spec: {containers: []}}}}`, "[]"},
		{`{metadata: {name: till}, spec: 1}`, "[]"},
	} {
		deployment := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(test.deployment), &deployment.Object); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(confinement.Missing(deployment)); got != test.missing {
			t.Errorf("%s lacks %s, want %s", test.deployment, got, test.missing)
		}
		if added := fmt.Sprint(confinement.Add(deployment)); added != test.missing {
			t.Errorf("%s gets %s, want %s", test.deployment, added, test.missing)
		}
		if remaining := confinement.Missing(deployment); len(remaining) > 0 {
			t.Errorf("%s still lacks %s", test.deployment, remaining)
		}
	}
}
