package kube_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
)

// kustomizations is the kind that most tests list.
var kustomizations = kube.ResourceKind{Group: "kustomize.toolkit.fluxcd.io", Versions: "v1,v1beta2", Resource: "kustomizations"}

const kustomizationsV1 = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"

// startServer starts an API server with a handler.
func startServer(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// clusterAt returns the cluster at a test server, with its certificate and a token.
func clusterAt(server *httptest.Server) kube.Cluster {
	return kube.Cluster{Host: server.URL, ClusterCACertificate: certificateOf(server), Token: "canary-token-3f9a"}
}

func certificateOf(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// answerList answers with a page of objects.
func answerList(w http.ResponseWriter, kind, version, next string, names ...string) {
	w.Header().Set("Content-Type", "application/json")
	var items []string
	for _, name := range names {
		items = append(
			items,
			fmt.Sprintf(
				`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"flux-system","managedFields":[{"manager":"x"}]},"spec":{"n":1}}`,
				version,
				kind,
				name,
			),
		)
	}
	fmt.Fprintf(
		w,
		`{"apiVersion":%q,"kind":"%sList","metadata":{"continue":%q,"resourceVersion":"1"},"items":[%s]}`,
		version,
		kind,
		next,
		strings.Join(items, ","),
	)
}

// answerStatus answers with an error of Kubernetes.
func answerStatus(w http.ResponseWriter, code int, message, name string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d,"details":{"name":%q}}`, message, code, name)
}

func answerVersion(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
}
