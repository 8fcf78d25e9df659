package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// fluxInstalled is a Deployment of Flux as `flux install` leaves it.
func fluxDeployment(name string, args ...any) map[string]any {
	container := map[string]any{"name": "manager", "image": "ghcr.io/fluxcd/" + name + ":v1.9.5", "args": args}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": "flux-system", "labels": map[string]any{"app.kubernetes.io/part-of": "flux"}},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}},
	}
}

// Where Flux was installed by others, a plan of flotilla_agent says whether it confines teams.
func TestAPlanWarnsOfFluxThatDoesNotConfineTeams(t *testing.T) {
	t.Parallel()
	const warning = "Flux does not confine teams"
	path := func(name string) string { return "edge-1/apis/apps/v1/namespaces/flux-system/deployments/" + name }
	server := &standInCluster{}
	url, certificate := server.start(t)
	server.objects[path("kustomize-controller")] = fluxDeployment("kustomize-controller", "--no-remote-bases=true")
	server.objects[path("notification-controller")] = fluxDeployment("notification-controller")
	server.objects[path("source-controller")] = fluxDeployment("source-controller")
	cluster := map[string]any{"host": url + "/edge-1", "cluster_ca_certificate": certificate, "token": "a"}
	w := providertest.New(startProvider)
	with := func(further map[string]any) providertest.Configuration {
		return onCluster(cluster, agentAttributes("flux-system", further))
	}

	_, said := w.Plan(t.Context(), with(nil))
	for _, want := range []string{
		warning, "Deployment flux-system/kustomize-controller lacks --default-service-account=kustomize-controller, --no-cross-namespace-refs=true",
		"Deployment flux-system/notification-controller lacks --no-cross-namespace-refs=true", "set confine = false",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("a plan does not say %q: %s", want, said)
		}
	}
	if strings.Contains(said.String(), "source-controller") || said.Err() != nil {
		t.Errorf("a plan says %s", said)
	}
	if _, said := w.Plan(t.Context(), with(map[string]any{"confine": false})); strings.Contains(said.String(), warning) {
		t.Errorf("although that was declined, a plan says %s", said)
	}
	if _, said := w.Apply(t.Context(), with(nil)); said.Err() != nil {
		t.Fatal(said)
	}
	if plan, said := w.Plan(t.Context(), with(nil)); !plan.Empty() || !strings.Contains(said.String(), warning) {
		t.Errorf("a plan that changes nothing says %s", said)
	}
	server.set(
		path("kustomize-controller"),
		fluxDeployment("kustomize-controller", "--default-service-account=default", "--no-cross-namespace-refs", "--no-remote-bases=true"),
	)
	server.set(path("notification-controller"), fluxDeployment("notification-controller", "--no-cross-namespace-refs=true"))
	if plan, said := w.Plan(t.Context(), with(nil)); !plan.Empty() || strings.Contains(said.String(), warning) {
		t.Errorf("although they have the arguments, a plan says %s", said)
	}
}

// Credentials that may not list Deployments are no error.
func TestAPlanSaysThatItCannotSeeWhetherFluxConfinesTeams(t *testing.T) {
	t.Parallel()
	server := &standInCluster{}
	server.start(t)
	guard, certificate := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/deployments") {
			http.Error(
				w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`,
				http.StatusForbidden,
			)
			return
		}
		server.ServeHTTP(w, r)
	}))
	cluster := map[string]any{"host": guard + "/edge-1", "cluster_ca_certificate": certificate, "token": "a"}
	_, said := providertest.New(startProvider).Plan(t.Context(), onCluster(cluster, agentAttributes("flux-system", nil)))
	if said.Err() != nil || !strings.Contains(said.String(), "may not list Deployments") {
		t.Errorf("the plan says %s", said)
	}
}

// The arguments of install are in the plan of the objects, and on the cluster.
func TestInstallConfinesFlux(t *testing.T) {
	t.Parallel()
	server := &standInCluster{}
	url, certificate := server.start(t)
	cluster := map[string]any{"host": url + "/edge-1", "cluster_ca_certificate": certificate, "token": "a"}
	const manifests = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec: {template: {spec: {containers: [{name: manager, image: "ghcr.io/fluxcd/kustomize-controller:v1.9.5", args: [--concurrent=20]}]}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: source-controller, namespace: flux-system}, spec: {template: {spec: {containers: [{name: manager}]}}}}
`
	w := providertest.New(startProvider)
	for _, test := range []struct {
		confine any
		want    string
	}{
		{false, "--concurrent=20"},
		{nil, "--concurrent=20 --default-service-account=kustomize-controller --no-cross-namespace-refs=true --no-remote-bases=true"},
	} {
		further := map[string]any{"install": manifests, "wait": false}
		if test.confine != nil {
			further["confine"] = test.confine
		}
		if _, said := w.Apply(t.Context(), onCluster(cluster, agentAttributes("flux-system", further))); said.Err() != nil {
			t.Fatal(said)
		}
		if got := strings.Join(server.args("edge-1/apis/apps/v1/namespaces/flux-system/deployments/kustomize-controller"), " "); got != test.want {
			t.Errorf("confine %v: kustomize-controller has %q", test.confine, got)
		}
	}
}

func (s *standInCluster) set(key string, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = object
}

// args returns the arguments of the first container of a Deployment.
func (s *standInCluster) args(key string) (args []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec := s.objects[key]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	given, _ := spec["containers"].([]any)[0].(map[string]any)["args"].([]any)
	for _, arg := range given {
		args = append(args, arg.(string))
	}
	return args
}
