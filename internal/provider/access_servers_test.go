package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// redirects keep or drop the method and body of the request.
var redirects = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

// TestAMeasurementTakesNoCredentialsToAnotherServer follows redirects, and checks URLs that only resemble the URL of the
// credentials.
func TestAMeasurementTakesNoCredentialsToAnotherServer(t *testing.T) {
	t.Parallel()
	evil := newWitness(t, nil)
	for _, status := range redirects {
		own := newWitness(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, evil.URL+r.URL.Path, status) })
		login := map[string]any{"url": own.URL + "/own", "token": "canary"}
		for form, block := range map[string]map[string]any{
			"its own url": login, "an entry of credentials": {"credentials": []any{with(login, "headers", map[string]any{"Cookie": "canary"})}},
		} {
			resembling := []string{
				own.URL + "/own-evil", own.URL + "/other", strings.Replace(own.URL, "127.0.0.1", "localhost", 1) + "/own", evil.URL + "/own",
				evil.URL + "/" + own.URL + "/own",
			}
			var checks []any
			for i, url := range append(resembling, own.URL+"/own") {
				checks = append(checks, newCheck(url, map[string]any{"name": fmt.Sprint("query ", i)}),
					map[string]any{"name": fmt.Sprint("web ", i), "of": "fleet", "pass": "value == 1.0", "web": map[string]any{"url": url}})
			}
			if values, diags := readMeasurements(t, block, checks...); values == nil || strings.Contains(fmt.Sprint(values, diags), "canary") {
				t.Errorf("%s, %d: %v, %s", form, status, values, diags)
			}
		}
		requests, credentials := own.recorded()
		for _, one := range credentials {
			if !strings.HasPrefix(one, "/own/") && !strings.HasPrefix(one, "/own: ") {
				t.Errorf("%d: outside of the prefix the server got credentials %s", status, one)
			}
		}
		if len(credentials) == 0 {
			t.Errorf("%d: the server of the credentials got %q without credentials", status, requests)
		}
	}
	requests, credentials := evil.recorded()
	if len(credentials) > 0 || len(requests) == 0 {
		t.Errorf("another server got requests %q and credentials %q", requests, credentials)
	}
	for _, one := range requests {
		if !strings.Contains(one, "/own") || strings.Contains(one, "/other") {
			t.Errorf("a redirect was followed: %s", one)
		}
	}
}

// newWitnessTLS returns the certificate as PEM.
func newWitnessTLS(t *testing.T, answer http.HandlerFunc) (w *witness, certificate string) {
	t.Helper()
	w = &witness{}
	w.Server = httptest.NewUnstartedServer(w.record(answer))
	w.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.StartTLS()
	t.Cleanup(w.Close)
	return w, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw}))
}

// TestAKubeconfigTakesNoCredentialsToAnotherServer reads clusters whose server redirects, and contexts that name another
// server.
func TestAKubeconfigTakesNoCredentialsToAnotherServer(t *testing.T) {
	t.Parallel()
	evil, authority := newWitnessTLS(t, nil)
	for _, status := range redirects {
		own, _ := newWitnessTLS(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, evil.URL+r.URL.Path, status) })
		kubeconfig := func(current string) string {
			cluster := func(name, server string) map[string]any {
				return map[string]any{"name": name, "cluster": map[string]any{
					"server": server, "certificate-authority-data": base64.StdEncoding.EncodeToString([]byte(authority)),
				}}
			}
			text, err := json.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "Config", "current-context": current,
				"clusters": []any{cluster("own", own.URL), cluster("evil", evil.URL)},
				"users": []any{
					map[string]any{"name": "own", "user": map[string]any{"token": "canary"}},
					map[string]any{"name": "nobody", "user": map[string]any{}},
				},
				"contexts": []any{
					map[string]any{"name": "own", "context": map[string]any{"cluster": "own", "user": "own"}},
					map[string]any{"name": "evil", "context": map[string]any{"cluster": "evil", "user": "nobody"}},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		clusters := map[string]any{
			"redirected": map[string]any{"kubeconfig": kubeconfig("own")},
			"elsewhere":  map[string]any{"kubeconfig": kubeconfig("evil")},
			"named":      map[string]any{"kubeconfig": kubeconfig("own"), "context": "evil"},
			"by host":    map[string]any{"host": own.URL, "cluster_ca_certificate": authority, "token": "canary"},
		}
		for name, cluster := range clusters {
			configuration := providertest.Configuration{Provider: map[string]any{"clusters": map[string]any{
				name: cluster, "other": map[string]any{"host": own.URL + "/other", "cluster_ca_certificate": authority, "token": "canary"},
			}}}
			values, diags := providertest.New(startProvider).ReadData(t.Context(), configuration, "flotilla_cluster_facts", map[string]any{})
			if strings.Contains(fmt.Sprint(values, diags), "canary") {
				t.Errorf("%s: the token is shown: %v, %s", name, values, diags)
			}
		}
		if _, credentials := own.recorded(); len(credentials) == 0 {
			t.Errorf("%d: the cluster's own server got no credentials", status)
		}
	}
	requests, credentials := evil.recorded()
	if len(credentials) > 0 || len(requests) == 0 {
		t.Errorf("another server got requests %q and credentials %q", requests, credentials)
	}
}
