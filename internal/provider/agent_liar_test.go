package provider_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// liar is a proxy of a real API server that changes the objects in its answers.
type liar struct {
	lie atomic.Pointer[func(r *http.Request, object map[string]any)]
}

// start returns the connection to the liar.
func (l *liar) start(t *testing.T, server *kubetest.Server) map[string]any {
	t.Helper()
	to, err := url.Parse(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		DisableCompression: true,
	} //nolint:gosec // of this test
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ModifyResponse = func(response *http.Response) error {
		lie := l.lie.Load()
		if lie == nil || response.StatusCode >= http.StatusMultipleChoices {
			return nil
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		var object map[string]any
		if json.Unmarshal(body, &object) == nil && object["metadata"] != nil {
			(*lie)(response.Request, object)
			if body, err = json.Marshal(object); err != nil {
				return err
			}
		}
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		response.Header.Set("Content-Length", fmt.Sprint(len(body)))
		return nil
	}
	front := httptest.NewUnstartedServer(proxy)
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
	return map[string]any{"host": front.URL, "cluster_ca_certificate": certificate, "token": server.Token}
}

// Lies about the agent's objects can neither control the terminal nor fill the state. A destroy still removes the objects.
func TestAnAgentWithstandsALyingCluster(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const evil = "\x1b[2J\u202eApply complete!\n\nError: x"
	someKeys := func(object map[string]any) map[string]any {
		fields, _ := object["spec"].(map[string]any)
		if fields == nil {
			fields = map[string]any{}
			object["spec"] = fields
		}
		return fields
	}
	isDryRun := func(r *http.Request) bool { return r.URL.Query().Get("dryRun") != "" }
	for name, lie := range map[string]func(r *http.Request, object map[string]any){
		"fields without end": func(r *http.Request, object map[string]any) {
			if isDryRun(r) {
				for i := range 5_000 {
					someKeys(object)[fmt.Sprintf("%s%d", evil, i)] = i
				}
			}
		},
		"a long field": func(r *http.Request, object map[string]any) {
			if isDryRun(r) {
				someKeys(object)[strings.Repeat("x", 1<<20)] = evil
			}
		},
		"managers": func(_ *http.Request, object map[string]any) {
			someKeys(object)["suspend"] = true
			metadata, _ := object["metadata"].(map[string]any)
			fields, _ := metadata["managedFields"].([]any)
			for i := range 1_000 {
				fields = append(fields, map[string]any{
					"manager": fmt.Sprintf("%s%d%s", evil, i, strings.Repeat("x", 1000)), "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:suspend": map[string]any{}}},
				})
			}
			metadata["managedFields"] = fields
		},
		"another object": func(_ *http.Request, object map[string]any) {
			metadata, _ := object["metadata"].(map[string]any)
			metadata["name"], metadata["uid"], object["kind"] = evil, evil, evil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &liar{}
			namespace := "liar-" + strings.ReplaceAll(name, " ", "-")
			configuration := onCluster(l.start(t, server), agentAttributes(namespace, nil))
			w := providertest.New(startProvider)
			applyAgent(t, w, configuration)
			l.lie.Store(&lie)
			plan, diags := w.Plan(t.Context(), configuration)
			text := diags.String()
			for _, line := range agentLines(plan) {
				text += "\n" + line
				if strings.Contains(line, "\n") {
					t.Errorf("a line of the plan is %.200q", line)
				}
			}
			state := 0
			if plan != nil {
				state = len(fmt.Sprint(plan.Refreshed().Values(agentAddress)))
			}
			t.Logf("%d lines, %d bytes of state, %d bytes of text: %.200q", len(agentLines(plan)), state, len(text), diags)
			if strings.ContainsAny(text, "\x1b\u202e") || len(text) > 20_000 || state > 50_000 {
				t.Errorf("got %d bytes of text, and %d bytes of state: %.500q", len(text), state, text)
			}
			l.lie.Store(nil)
			if _, diags := w.Apply(t.Context(), configuration, providertest.Destroy()); diags.Err() != nil ||
				server.Get(t, "v1", "Secret", namespace, "flotilla-repository") != nil {
				t.Errorf("the destroy says %s", diags)
			}
		})
	}
}
