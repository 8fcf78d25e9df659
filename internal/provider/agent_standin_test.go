package provider_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// standInCluster is an API server with the kinds of Flux and Argo CD. It stores every object unchanged. The first path segment
// is the name of the cluster.
type standInCluster struct {
	delay  time.Duration
	refuse http.HandlerFunc // answers every change, if set

	mu       sync.Mutex
	objects  map[string]map[string]any
	requests int
	epoch    int // number of replacements
}

var standInKinds = map[string][]struct{ resource, kind string }{
	"v1":                                     {{"namespaces", "Namespace"}, {"secrets", "Secret"}},
	"apiextensions.k8s.io/v1":                {{"customresourcedefinitions", "CustomResourceDefinition"}},
	"apps/v1":                                {{"deployments", "Deployment"}},
	"source.toolkit.fluxcd.io/v1":            {{"gitrepositories", "GitRepository"}},
	"notification.toolkit.fluxcd.io/v1beta3": {{"providers", "Provider"}, {"alerts", "Alert"}},
	"kustomize.toolkit.fluxcd.io/v1":         {{"kustomizations", "Kustomization"}},
	"argoproj.io/v1alpha1": {
		{"appprojects", "AppProject"},
		{"applications", "Application"},
		{"applicationsets", "ApplicationSet"},
	},
}

// start returns the certificate as PEM.
func (s *standInCluster) start(t testing.TB) (url, certificate string) {
	t.Helper()
	s.objects = map[string]map[string]any{}
	return serveTLS(t, s)
}

// serveTLS serves a stand-in for an API server. The certificate is PEM.
func serveTLS(t testing.TB, handler http.Handler) (url, certificate string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{loopbackCertificate()}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// loopbackCertificate has an ECDSA key, which signs ten times as fast as the RSA key of httptest.
var loopbackCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
})

func (s *standInCluster) replace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = map[string]map[string]any{}
	s.epoch++
}

// put stores an object of a cluster that is in a namespace.
func (s *standInCluster) put(cluster string, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	metadata := object["metadata"].(map[string]any)
	for _, kind := range standInKinds[object["apiVersion"].(string)] {
		if kind.kind == object["kind"] {
			key := fmt.Sprintf("%s/apis/%s/namespaces/%s/%s/%s", cluster, object["apiVersion"], metadata["namespace"], kind.resource, metadata["name"])
			metadata["uid"] = "uid-of-" + key
			s.objects[key] = object
		}
	}
}

// isList reports whether a path below apis/ lists the objects of a kind.
func (s *standInCluster) isList(path string) bool {
	slash := strings.LastIndex(path, "/")
	version, _, _ := strings.Cut(path[:max(slash, 0)], "/namespaces/") // a list may be of one namespace
	for _, kind := range standInKinds[version] {
		if kind.resource == path[slash+1:] {
			return true
		}
	}
	return false
}

// isListPath reports whether a path is that of the objects of a kind: "api/v1/pods" or "apis/apps/v1/namespaces/a/deployments".
func isListPath(path string) bool {
	api, rest, _ := strings.Cut(path, "/")
	if api == "apis" {
		_, rest, _ = strings.Cut(rest, "/") // the group
	}
	names := strings.Split(rest, "/")
	return len(names) == 2 || len(names) == 4 && names[1] == "namespaces"
}

func (s *standInCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(s.delay)
	cluster, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	version := strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	w.Header().Set("Content-Type", "application/json")
	key := cluster + "/" + path
	switch {
	case standInKinds[version] != nil:
		var list []string
		for _, one := range standInKinds[version] {
			list = append(
				list,
				fmt.Sprintf(
					`{"name":%q,"kind":%q,"namespaced":%v,"verbs":["list"]}`,
					one.resource,
					one.kind,
					one.kind != "Namespace" && one.kind != "CustomResourceDefinition",
				),
			)
		}
		fmt.Fprintf(w, `{"kind":"APIResourceList","resources":[%s]}`, strings.Join(list, ","))
	case path == "version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case r.Method == http.MethodGet && s.isList(version):
		items := []any{}
		for other, object := range s.objects {
			folder, resource := key[:strings.LastIndex(key, "/")+1], key[strings.LastIndex(key, "/"):]
			if strings.HasPrefix(other, folder) && strings.Contains(other, resource+"/") {
				items = append(items, object)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
	case strings.HasSuffix(path, "/namespaces/kube-system"):
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"uid-%d-of-%s"}}`, s.epoch, cluster)
	case r.Method == http.MethodPatch && s.refuse != nil:
		s.refuse(w, r)
	case r.Method == http.MethodPatch:
		var object map[string]any
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if r.Header.Get("Content-Type") == "application/merge-patch+json" {
			if spec, _ := object["spec"].(map[string]any); spec == nil { // a dry run
				_ = json.NewEncoder(w).Encode(s.objects[key])
				return
			}
			for field, value := range object["spec"].(map[string]any) {
				s.objects[key]["spec"].(map[string]any)[field] = value
			}
			_ = json.NewEncoder(w).Encode(s.objects[key])
			return
		}
		metadata := object["metadata"].(map[string]any)
		metadata["uid"] = fmt.Sprintf("uid-%d-of-%s", s.epoch, key)
		owned := map[string]any{}
		data, _ := object["data"].(map[string]any)
		for name := range data {
			owned["f:"+name] = map[string]any{}
		}
		metadata["managedFields"] = []any{
			map[string]any{"manager": "flotilla", "operation": "Apply", "fieldsV1": map[string]any{"f:data": owned}},
		}
		if object["kind"] == "CustomResourceDefinition" {
			object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		}
		if s.objects[key] == nil {
			w.WriteHeader(http.StatusCreated)
		}
		if r.URL.Query().Get("dryRun") == "" {
			s.objects[key] = object
		}
		_ = json.NewEncoder(w).Encode(object)
	case r.Method == http.MethodDelete && s.objects[key] != nil:
		if r.URL.Query().Get("dryRun") == "" {
			delete(s.objects, key)
		}
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case s.objects[key] != nil:
		_ = json.NewEncoder(w).Encode(s.objects[key])
	case isListPath(path): // of a kind that is not installed
		http.Error(w, "404 page not found", http.StatusNotFound)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"x"}}`)
	}
}
