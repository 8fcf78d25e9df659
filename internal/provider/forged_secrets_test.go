package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func fleetWithReference(reference map[string]any) providertest.Call {
	vault := map[string]any{"provider": "vault", "parameters": map[string]any{"roleName": "app"}}
	return fleetOf(map[string]any{
		"cluster_types": []any{map[string]any{
			"name": "drone", "labels": map[string]any{"edge": "true"}, "secret_service": "secrets-store-csi", "secret_stores": map[string]any{"vault": vault},
		}},
		"config_containers": []any{map[string]any{"name": "all", "secrets": map[string]any{"DB": reference}}},
	})
}

// Vault's client and others resolve ".." before a request. A rule about the prefix of a key would check another secret.
func TestMisleadingReferencesToSecretsAreErrors(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"secret/data/team-a/../team-b/db":       `has "." or ".." between slashes`,
		"../db":                                 `has "." or ".." between slashes`,
		"secret/data/./db":                      `has "." or ".." between slashes`,
		"secret/data/team-a/%2e%2e/team-b/db":   `has "." or ".." between slashes`,
		"secret/data/team-a%2F..%2fteam-b/db":   `has "." or ".." between slashes`,
		`secret\..\db`:                          `has "." or ".." between slashes`,
		"secret/data/db#team-a":                 `has a "#" or "%"`,
		"secret/data/d%62":                      `has a "#" or "%"`,
		"secret/data/db?version=1":              `has a "?"`,
		"secret/data/db\n- objectName: another": "has a character that is not shown",
		"secret/data/\u202edb":                  "has a character that is not shown",
	} {
		configuration := assigned(bare(t), fleetWithReference(map[string]any{"store": "vault", "key": key, "property": "password"}), nil)
		_, diags := providertest.New(startProvider).Plan(t.Context(), configuration)
		if diags.Err() == nil || !strings.Contains(diags.String(), `config_containers["all"].secrets["DB"].key`) ||
			!strings.Contains(diags.String(), want) {
			t.Errorf("key %q: got diagnostics %s", key, diags)
		}
	}
}

// serveForgedTokens serves an API with invalid responses to token requests.
func serveForgedTokens(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) map[string]any {
	t.Helper()
	host, certificate := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	return map[string]any{"host": host, "cluster_ca_certificate": certificate, "token": "canary-t0ken-4713"}
}

// The token becomes a header of requests to other servers. It must not add further headers.
func TestATokenOfAHostileClusterIsATokenOrAnError(t *testing.T) {
	t.Parallel()
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	t.Cleanup(other.Close)
	respondWith := func(token string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"kind": "TokenRequest", "status": map[string]any{"token": token, "expirationTimestamp": "2026-01-31T18:00:00Z"},
			})
		}
	}
	const noToken = "the API server gives a token that no HTTP header can have"
	for name, attack := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"another header":     {respondWith("t\r\nX-Remote-User: admin"), noToken},
		"a space":            {respondWith("t --as=admin"), noToken},
		"an escape":          {respondWith("t\x1b[2J"), noToken},
		"an interpolation":   {respondWith(`${file("/etc/passwd")}`), noToken},
		"letters of Unicode": {respondWith("tоken"), noToken}, // first "o" is Cyrillic
		"100 KiB":            {respondWith(strings.Repeat("t", 100<<10)), noToken},
		"2 MiB":              {respondWith(strings.Repeat("t", 2<<20)), "does not answer like a Kubernetes API server"},
		"no token":           {respondWith(""), "does not answer like a Kubernetes API server"},
		"another kind": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"Secret","status":{"token":"t","expirationTimestamp":"2026-01-31T18:00:00Z"}}`)
		}, "does not answer like a Kubernetes API server"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/api", http.StatusTemporaryRedirect)
		}, "redirects are not followed"},
		"an error with the credentials": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `{"kind":"Status","message":"no, \u001b[2J%s"}`, r.Header.Get("Authorization"))
		}, "refuses a token of service account flux-system/reader"},
	} {
		wanted := map[string]any{"cluster": "edge-1", "namespace": "flux-system", "service_account": "reader"}
		opened, diags := providertest.New(startProvider).
			OpenEphemeral(t.Context(), onCluster(serveForgedTokens(t, attack.answer), nil), clusterToken, wanted)
		if diags.Err() == nil || !strings.Contains(diags.String(), attack.want) || strings.Contains(diags.String(), "canary") ||
			strings.Contains(diags.String(), "\x1b") {
			t.Errorf("%s: got %.200v and diagnostics %.500s", name, opened, diags)
		}
	}
	if elsewhere > 0 {
		t.Errorf("%d requests went to another server", elsewhere)
	}
}

// Names may come from a cluster or a branch. They must reach only the named account of a cluster in the provider block.
func TestARequestOfATokenStaysAtItsAccount(t *testing.T) {
	t.Parallel()
	requested := 0
	cluster := serveForgedTokens(t, func(w http.ResponseWriter, _ *http.Request) { requested++; w.WriteHeader(http.StatusNotFound) })
	for attribute, texts := range map[string][]string{
		"cluster":         {"edge-2", "EDGE-1", "edge-1 ", "edge-1/../edge-2", "https://evil.example.com", "edge‐1", strings.Repeat("a", 10_000)},
		"namespace":       {"..", "a/b", "a/serviceaccounts/b", "A", "a.b", "a?x=y", "a%2fb", "a\x1b[2J", strings.Repeat("a", 10_000)},
		"service_account": {"..", "a/token", "../../secrets/b", "a?dryRun=All", "a#b", "a%2fb", "A", "a\x1b[2J", strings.Repeat("a", 10_000)},
		"duration":        {"9m59s", "-1h", "24h1m", "1000000h", "0", "1", "\x1b[2J"},
	} {
		for _, text := range texts {
			wanted := map[string]any{"cluster": "edge-1", "namespace": "flux-system", "service_account": "reader"}
			wanted[attribute] = text
			_, diags := providertest.New(startProvider).OpenEphemeral(t.Context(), onCluster(cluster, nil), clusterToken, wanted)
			if diags.Err() == nil || diags[0].At != fmt.Sprintf("AttributeName(%q)", attribute) || strings.Contains(diags.String(), "\x1b") {
				t.Errorf("%s %.40q: got diagnostics %.500s", attribute, text, diags)
			}
		}
	}
	if requested > 0 {
		t.Errorf("%d tokens were requested", requested)
	}
}
