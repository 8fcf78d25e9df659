package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const clusterToken = "flotilla_cluster_token"

// standInTokens is an API server that issues tokens for one account and records the requests.
type standInTokens struct{ requested []string }

func (s *standInTokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/api/v1/namespaces/flux-system/serviceaccounts/reader/token" || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","code":404,"details":{"name":"x","kind":"serviceaccounts"}}`)
		return
	}
	var body struct{ Spec map[string]any }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.requested = append(s.requested, fmt.Sprint(body.Spec))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"kind":"TokenRequest","status":{"token":"t-%d","expirationTimestamp":"2026-01-31T18:00:00Z"}}`, len(s.requested))
}

func TestATokenIsRequestedEachTime(t *testing.T) {
	t.Parallel()
	tokens := &standInTokens{}
	host, certificate := serveTLS(t, tokens)
	w := providertest.New(startProvider)
	configuration := func(cluster any) providertest.Configuration { return onCluster(cluster, nil) }
	reachable := map[string]any{"host": host, "cluster_ca_certificate": certificate, "token": "canary-t0ken-4713"}
	tokenAttributes := func(further map[string]any) map[string]any {
		attributes := map[string]any{"cluster": "edge-1", "namespace": "flux-system", "service_account": "reader"}
		for name, value := range further {
			attributes[name] = value
		}
		return attributes
	}
	for i, further := range []map[string]any{nil, {"duration": "30m", "audiences": []any{"vault"}}} {
		opened, diags := w.OpenEphemeral(t.Context(), configuration(reachable), clusterToken, tokenAttributes(further))
		if len(diags) > 0 || opened["token"] != fmt.Sprintf("t-%d", i+1) || opened["expires_at"] != "2026-01-31T18:00:00Z" {
			t.Errorf("with %v, got %v and %s", further, opened, diags)
		}
	}
	if want := []string{"map[expirationSeconds:3600]", "map[audiences:[vault] expirationSeconds:1800]"}; !slices.Equal(
		tokens.requested,
		want,
	) {
		t.Errorf("%q is requested, want %q", tokens.requested, want)
	}

	// An unknown cluster has an unknown token, without an error.
	opened, diags := w.OpenEphemeral(t.Context(), configuration(map[string]any{"host": providertest.Unknown{}}), clusterToken, tokenAttributes(nil))
	if len(diags) > 0 || opened["token"] != (providertest.Unknown{}) || opened["expires_at"] != (providertest.Unknown{}) ||
		opened["cluster"] != "edge-1" {
		t.Errorf("for an unknown cluster, got %v and %s", opened, diags)
	}

	for _, c := range []struct {
		cluster                any
		further                map[string]any
		summary, configuration string
		detail, never          string
	}{
		{nil, nil, "Provider does not know this cluster", "cluster", `The provider's clusters has no entry "edge-1".`, ""},
		{map[string]any{"host": "https://127.0.0.1:1", "token": "canary-t0ken-4713"}, nil, "Cluster cannot be reached", "cluster", `Cluster "edge-1": the API server cannot be reached`, "canary"},
		{reachable, map[string]any{"service_account": "gone"}, "Cluster gives no token", "service_account", `Cluster "edge-1": the API server has no service account flux-system/gone.`, "canary"},
		{reachable, map[string]any{"cluster": ""}, "Invalid cluster", "cluster", "Cluster is empty", ""},
		{reachable, map[string]any{"namespace": "Flux"}, "Invalid namespace", "namespace", `"Flux" is not a DNS label`, ""},
		{reachable, map[string]any{"service_account": "a/b"}, "Invalid service_account", "service_account", `"a/b" is not a DNS subdomain`, ""},
		{reachable, map[string]any{"audiences": []any{"a", ""}}, "Invalid audiences", "audiences", "An audience is empty.", ""},
		{reachable, map[string]any{"duration": "5m"}, "Invalid duration", "duration", `"5m" is less than ten minutes`, ""},
		{reachable, map[string]any{"duration": "an hour"}, "Invalid duration", "duration", `"an hour" is not a duration`, ""},
	} {
		_, diags := w.OpenEphemeral(t.Context(), configuration(c.cluster), clusterToken, tokenAttributes(c.further))
		if diags.Err() == nil || !diags.Has(c.summary) || diags[0].At != fmt.Sprintf("AttributeName(%q)", c.configuration) ||
			!strings.Contains(diags.String(), c.detail) ||
			c.never != "" && strings.Contains(diags.String(), c.never) {
			t.Errorf("with %v, got %s; want %s at %s: %s", c.further, diags, c.summary, c.configuration, c.detail)
		}
	}
	// All mistakes are reported at once, even while an argument is unknown.
	_, diags = w.OpenEphemeral(t.Context(), configuration(reachable), clusterToken, map[string]any{
		"cluster": providertest.Unknown{}, "namespace": "Flux", "service_account": "a/b", "duration": "5m",
	})
	if !diags.Has("Invalid namespace") || !diags.Has("Invalid service_account") || !diags.Has("Invalid duration") {
		t.Errorf("for three mistakes, got %s", diags)
	}
}

// TestATokenIsInNoState applies the example with both tools, and authenticates with the token. `make matrix` runs this test.
func TestATokenIsInNoState(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: fleet-reader, namespace: flux-system}
`)
	kubeconfig := filepath.Join(t.TempDir(), "edge-1.kubeconfig")
	writeFile(t, kubeconfig, server.Kubeconfig())
	read := "file(" + strconv.Quote(filepath.ToSlash(kubeconfig)) + ")"
	example := requiredProviders + kubeconfigPattern.ReplaceAllLiteralString(
		readFile(t, filepath.Join("..", "..", "examples", "ephemeral-resources", clusterToken, "ephemeral-resource.tf")), read)
	for name, tool := range tools(t) {
		w := newWorkdir(t, tool, map[string]string{"main.tf": example})
		w.run("plan", "-input=false", "-out=plan.out")
		w.run("apply", "-input=false", "plan.out")
		var message string
		if err := json.Unmarshal([]byte(w.run("output", "-json", "edge_1")), &message); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(message, "lack the right to list nodes") { // a right of the kubeconfig, but not of the account
			t.Errorf("%s: another account asked the cluster: %s", name, message)
		}
		for file, text := range map[string]string{"the state": readFile(t, filepath.Join(w.path, "terraform.tfstate")), "the plan": w.run("show", "-json", "plan.out")} {
			if strings.Contains(text, "eyJ") { // every token of Kubernetes begins so
				t.Errorf("%s: %s has the token", name, file)
			}
		}

		// A cluster that the same apply creates is no error at plan. OpenTofu rejects an unknown token, and opens no ephemeral
		// resource that depends on a change.
		created := strings.Replace(
			strings.Replace(example, "  duration        = \"30m\"\n", "  depends_on      = [terraform_data.cluster]\n", 1),
			"edge-1 = { kubeconfig = "+read+" }",
			"edge-1 = { kubeconfig = terraform_data.cluster.output }",
			1,
		) +
			"\nresource \"terraform_data\" \"cluster\" {\n  input = " + read + "\n}\n"
		if strings.Count(created, "terraform_data.cluster") != 2 {
			t.Fatal("the example reaches the cluster otherwise")
		}
		w = newWorkdir(t, tool, map[string]string{"main.tf": created})
		w.run("apply", "-input=false", "-auto-approve")
		if text, err := os.ReadFile(filepath.Join(w.path, "terraform.tfstate")); err != nil || strings.Contains(string(text), "eyJ") {
			t.Errorf("%s: the state has the token: %v", name, err)
		}
	}
}
