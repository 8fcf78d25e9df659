package kinds_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m.Run)) }

const kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: till, namespace: default}
spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: till}}
`

// changedObjects returns two valid objects, and copies with one change each.
func changedObjects() []string {
	all := []string{deployment, kustomization}
	for _, change := range [][2]string{
		{"replicas: 2", "replicas: two"},
		{"replicas: 2", "replicas: \"2\""},
		{"replicas: 2", "replica: 2"},
		{"replicas: 2", "replicas: null"},
		{"replicas: 2", "strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}"},
		{"replicas: 2", "strategy: {rollingUpdate: {maxSurge: true}}"},
		{"containerPort: 80", "containerPort: http"},
		{"containerPort: 80", "containerPort: 80, protocol: null"},
		{"cpu: 0.5", "cpu: 1 core"},
		{"cpu: 0.5", "cpu: [1]"},
		{"memory: 1Gi", "memory: 12e6"},
		{"image: nginx", "image: nginx\n          env: [{name: A, value: 1}]"},
		{"image: nginx", "image: nginx\n          env: [{name: A, value: \"1\"}]"},
		{"image: nginx", "image: nginx\n          args: [1]"},
		{"image: nginx", "image: nginx\n          livenesProbe: {}"},
		{"name: till\n", "title: till\n"},
		{"selector: {matchLabels: {app: till}}", "paused: true"},
		{"labels: {app: till}}\nspec", "labels: {app: till}, annotations: {a: 1}}\nspec"},
		{"labels: {app: till}}\nspec", "labels: {app: till}, finalizers: all}\nspec"},
	} {
		all = append(all, strings.Replace(deployment, change[0], change[1], 1))
	}
	for _, change := range [][2]string{
		{"1h", "1d"}, {"1h", "3600"}, {"1h", "1h, timeout: 5m30s"}, {"1h", "1h, timeOut: 5m"},
		{"prune: true", "prune: yes please"}, {"prune: true", "force: true"}, {"GitRepository", "Git"},
		{"prune: true", "prune: true, kubeConfig: {}"}, {"prune: true", "prune: true, kubeConfig: {secretRef: {name: a}}"},
		{"prune: true", "prune: true, postBuild: {substitute: {a: 1}}"}, {"prune: true", "prune: true, postBuild: {substitute: {a.b: c}}"},
		{"prune: true", "prune: true, targetNamespace: ''"}, {"prune: true", "prune: true, healthChecks: [{kind: A}]"},
	} {
		all = append(all, strings.Replace(kustomization, change[0], change[1], 1))
	}
	return all
}

// TestARealAPIAgrees compares the catalog with server-side apply of a real API, as Flux uses it. They differ only for a null in a
// custom resource: server-side apply refuses it, and a creation, as by Helm, drops it.
func TestARealAPIAgrees(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	c := catalog(t, "1.36")
	accepted := 0
	for _, text := range changedObjects() {
		o := parseObject(t, text)
		u := &unstructured.Unstructured{Object: unstructuredOf(t, o)}
		u.SetNamespace("default")
		_, err := server.DryRun(t.Context(), u)
		if got := c.Accepts(o); got != (err == nil) {
			t.Errorf("got error %v of the API and violations %v of the catalog:\n%s", err, c.Check(o), text)
		}
		if err == nil {
			accepted++
		}
	}
	t.Logf("%d of %d objects are accepted", accepted, len(changedObjects()))
}

// unstructuredOf returns an object with the number types of the API's client.
func unstructuredOf(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	var u unstructured.Unstructured
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u.Object
}
