package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// fluxDeployment returns a Deployment as `flux install` creates it.
func fluxDeployment(name string, args ...any) map[string]any {
	container := map[string]any{"name": "manager", "image": "ghcr.io/fluxcd/" + name + ":v1.9.5", "args": args}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": "flux-system", "labels": map[string]any{"app.kubernetes.io/part-of": "flux"}},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}},
	}
}

// TestAPlanWarnsOfFluxThatDoesNotConfineTeams plans flotilla_agent on a cluster with an existing Flux.
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
	configuration := func(further map[string]any) providertest.Configuration {
		return onCluster(cluster, agentAttributes("flux-system", further))
	}

	_, diags := w.Plan(t.Context(), configuration(nil))
	for _, want := range []string{
		warning, "Deployment flux-system/kustomize-controller lacks --default-service-account=kustomize-controller, --no-cross-namespace-refs=true",
		"Deployment flux-system/notification-controller lacks --no-cross-namespace-refs=true", "set confine = false",
	} {
		if !strings.Contains(diags.String(), want) {
			t.Errorf("a plan does not say %q: %s", want, diags)
		}
	}
	if strings.Contains(diags.String(), "source-controller") || diags.Err() != nil {
		t.Errorf("a plan says %s", diags)
	}
	if _, diags := w.Plan(t.Context(), configuration(map[string]any{"confine": false})); strings.Contains(diags.String(), warning) {
		t.Errorf("with confine = false, a plan says %s", diags)
	}
	if _, diags := w.Apply(t.Context(), configuration(nil)); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan, diags := w.Plan(t.Context(), configuration(nil)); !plan.Empty() || !strings.Contains(diags.String(), warning) {
		t.Errorf("a plan without changes says %s", diags)
	}
	server.set(
		path("kustomize-controller"),
		fluxDeployment("kustomize-controller", "--default-service-account=default", "--no-cross-namespace-refs", "--no-remote-bases=true"),
	)
	server.set(path("notification-controller"), fluxDeployment("notification-controller", "--no-cross-namespace-refs=true"))
	if plan, diags := w.Plan(t.Context(), configuration(nil)); !plan.Empty() || strings.Contains(diags.String(), warning) {
		t.Errorf("with the arguments, a plan says %s", diags)
	}
}

func TestAPlanReportsThatFluxCannotBeChecked(t *testing.T) {
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
	_, diags := providertest.New(startProvider).Plan(t.Context(), onCluster(cluster, agentAttributes("flux-system", nil)))
	if diags.Err() != nil || !strings.Contains(diags.String(), "may not list Deployments") {
		t.Errorf("the plan says %s", diags)
	}
}

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
		if _, diags := w.Apply(t.Context(), onCluster(cluster, agentAttributes("flux-system", further))); diags.Err() != nil {
			t.Fatal(diags)
		}
		if got := strings.Join(server.args("edge-1/apis/apps/v1/namespaces/flux-system/deployments/kustomize-controller"), " "); got != test.want {
			t.Errorf("confine %v: kustomize-controller has %q", test.confine, got)
		}
		if got := w.State.Values(agentAddress)["confine"]; got != test.confine {
			t.Errorf("the state has confine %v, want %v", got, test.confine)
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
	values, _ := spec["containers"].([]any)[0].(map[string]any)["args"].([]any)
	for _, arg := range values {
		args = append(args, arg.(string))
	}
	return args
}
