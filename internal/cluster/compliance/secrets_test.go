package compliance_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestExternalSecretsAreReadOnlyIfRecordsNameThem(t *testing.T) {
	t.Parallel()
	const synced = `{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "platform-secrets", "namespace": "web", "generation": %d},
		"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "SecretSynced", "message": "secret synced", "lastTransitionTime": "2026-11-21T20:00:00Z"}],
		"refreshTime": "2026-11-22T00:30:00Z", "syncedResourceVersion": "2-9f3c4b0d1e2a5f60718293a4b5c6d7e8f9012345678901234567890a"}}`
	var mu sync.Mutex
	asked := map[string]int{}
	// cluster starts an API server with these ExternalSecrets, or with an error code, and counts requests by name.
	cluster := func(name, moment string, code int, items ...string) kube.Cluster {
		return replaceAnswer(t, startAPI(t, moment, nil), "externalsecrets", func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			asked[name]++
			mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			if code != http.StatusOK {
				_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":%d}`, code)
				return
			}
			_, _ = fmt.Fprintf(
				w,
				`{"kind":"ExternalSecretList","apiVersion":"external-secrets.io/v1","metadata":{},"items":[%s]}`,
				strings.Join(items, ","),
			)
		})
	}
	q := newQuestion(
		map[string]string{
			"argo-1":       "argo",
			"flux-1":       "flux",
			"flux-old":     "flux",
			"flux-bare":    "flux",
			"flux-forbids": "flux",
			"flux-without": "flux",
		},
	)
	q.Feedback.Clusters = &compliance.Clusters{Reach: map[string]kube.Cluster{
		"argo-1": cluster("argo-1", "1-ready", http.StatusForbidden),
		"flux-1": cluster(
			"flux-1",
			"1-ready",
			http.StatusOK,
			fmt.Sprintf(synced, 2),
		), "flux-old": cluster("flux-old", "1-ready", http.StatusOK, fmt.Sprintf(synced, 3)),
		"flux-bare":    cluster("flux-bare", "1-ready", http.StatusOK),
		"flux-forbids": cluster("flux-forbids", "1-ready", http.StatusForbidden),
		"flux-without": cluster("flux-without", "1-ready", http.StatusNotFound),
	}}
	r := &repository{
		tip: newer, commits: map[string]string{ready: treeA, newer: treeA},
		extraObjects: map[string]folder.ObjectRef{"flux": {Kind: "ExternalSecret", Namespace: "web", Name: "platform-secrets"}},
	}
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{
		"argo-1": {verdict.Ready, ""}, "flux-1": {verdict.Ready, ""},
		"flux-old":     {verdict.Progressing, "ExternalSecret web/platform-secrets was changed after its Secret was written"},
		"flux-bare":    {verdict.Progressing, "ExternalSecret web/platform-secrets does not exist"},
		"flux-forbids": {verdict.Unknown, "ExternalSecret web/platform-secrets cannot be read: "},
		"flux-without": {
			verdict.Unknown,
			"ExternalSecret web/platform-secrets cannot be read: the cluster has no externalsecrets.external-secrets.io",
		},
	})
	if asked["argo-1"] != 0 || asked["flux-1"] != 1 {
		t.Errorf("got requests %v, want none to argo-1 and one to flux-1", asked)
	}
}

// replaceAnswer starts a proxy of an API server with another answer for one resource.
func replaceAnswer(t *testing.T, all kube.Cluster, resource string, answer http.HandlerFunc) kube.Cluster {
	t.Helper()
	to, err := url.Parse(all.Host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(all.ClusterCACertificate))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	return startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/"+resource) {
			proxy.ServeHTTP(w, r)
			return
		}
		answer(w, r)
	})
}
