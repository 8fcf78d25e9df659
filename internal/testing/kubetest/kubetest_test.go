package kubetest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m.Run)) }

const configMap = `
apiVersion: v1
kind: Namespace
metadata: {name: %NAME%}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, namespace: %NAME%}
data: {hello: world}
`

func TestKubeconfigReachesTheAPI(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(t, strings.ReplaceAll(configMap, "%NAME%", "reached"))

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(server.Kubeconfig()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	found, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).
		Namespace("reached").Get(t.Context(), "greeting", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if value, _, _ := unstructured.NestedString(found.Object, "data", "hello"); value != "world" {
		t.Errorf("got the value %q of the ConfigMap", value)
	}
}

func TestAPIDistinguishesAdministrators(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(server.CA)) {
		t.Fatal("CA is no certificate")
	}
	requestStatus := func(token string, certificates ...tls.Certificate) int {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates, MinVersion: tls.VersionTLS12}}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Host+"/api/v1/secrets", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	keyPair := func(user string, groups ...string) tls.Certificate {
		text, key := server.ClientCertificate(t, user, groups...)
		certificate, err := tls.X509KeyPair([]byte(text), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	for _, test := range []struct {
		name string
		got  int
		want int
	}{
		{"the administrator's token", requestStatus(server.Token), http.StatusOK},
		{"an administrator's certificate", requestStatus("", keyPair("root", "system:masters")), http.StatusOK},
		{"another token", requestStatus("another"), http.StatusUnauthorized},
		{"nobody", requestStatus(""), http.StatusForbidden},
		{"another's certificate", requestStatus("", keyPair("somebody")), http.StatusForbidden},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, test.got, test.want)
		}
	}
}

const kustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: recorded, namespace: default, generation: 7, resourceVersion: "12", uid: 0e7ba9a1}
spec:
  interval: 1m
  prune: true
  sourceRef: {kind: GitRepository, name: flotilla}
status:
  observedGeneration: 6
  conditions:
  - {type: Ready, status: "True", reason: ReconciliationSucceeded, message: "Applied", observedGeneration: 6, lastTransitionTime: "2026-01-02T03:04:05Z"}
`

func TestRecordedObjectsKeepTheirStatus(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	restored := server.Restore(t, kustomization)[0]
	if generation := restored.GetGeneration(); generation != 1 {
		t.Errorf("got the generation %d, want 1", generation)
	}
	// The recorded status is one generation behind.
	if observed, _, _ := unstructured.NestedInt64(restored.Object, "status", "observedGeneration"); observed != 0 {
		t.Errorf("got the observedGeneration %d, want 0", observed)
	}
	conditions, _, _ := unstructured.NestedSlice(restored.Object, "status", "conditions")
	if len(conditions) != 1 || conditions[0].(map[string]any)["message"] != "Applied" {
		t.Errorf("got the conditions %v", conditions)
	}

	for _, object := range []*unstructured.Unstructured{
		restored, // its status is a subresource
		server.Apply(t, "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: recorded, namespace: default}, spec: {project: default, destination: {}, source: {repoURL: a}}}")[0],
	} {
		status := map[string]any{"history": []any{}}
		if object.GetKind() == "Application" {
			status = map[string]any{"health": map[string]any{"status": "Healthy"}}
		}
		server.SetStatus(t, object, status)
		found := server.Get(t, object.GetAPIVersion(), object.GetKind(), "default", "recorded")
		written, _, _ := unstructured.NestedMap(found.Object, "status")
		for key := range written {
			if _, ok := status[key]; !ok {
				t.Errorf("the status of %s still has %s", object.GetKind(), key)
			}
		}
		server.Delete(t, object.GetAPIVersion(), object.GetKind(), "default", "recorded")
	}
}

func TestKindsOfAllAgentsAreServed(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for kind, version := range map[string]string{
		"GitRepository": "source.toolkit.fluxcd.io/v1", "OCIRepository": "source.toolkit.fluxcd.io/v1", "HelmRepository": "source.toolkit.fluxcd.io/v1",
		"Kustomization": "kustomize.toolkit.fluxcd.io/v1", "HelmRelease": "helm.toolkit.fluxcd.io/v2",
		"Application": "argoproj.io/v1alpha1", "AppProject": "argoproj.io/v1alpha1",
		"GitRepo": "fleet.cattle.io/v1alpha1", "Bundle": "fleet.cattle.io/v1alpha1", "BundleDeployment": "fleet.cattle.io/v1alpha1", "HelmOp": "fleet.cattle.io/v1alpha1",
	} {
		if found := server.Get(t, version, kind, "default", "nothing"); found != nil {
			t.Errorf("got a %s, want none", kind)
		}
	}
}

func TestKindsOfSecretServicesAreServed(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Secrets: true})
	server.Apply(t, `
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: known, namespace: default}
spec: {secretStoreRef: {name: vault, kind: ClusterSecretStore}, data: [{secretKey: a, remoteRef: {key: b}}]}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: known}
spec: {provider: {fake: {data: []}}}
---
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: known, namespace: default}
spec: {provider: vault}
---
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {name: known, namespace: default}
spec: {encryptedData: {a: AgBy}}
`)
}

func TestControllersEndNamespaces(t *testing.T) {
	acceptancetest.Only(t)
	server := kubetest.Start(t, kubetest.Options{Controllers: true})
	server.Apply(t, strings.ReplaceAll(configMap, "%NAME%", "ended"))
	server.Delete(t, "v1", "Namespace", "", "ended")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for server.Get(t, "v1", "Namespace", "", "ended") != nil {
		select {
		case <-ctx.Done():
			t.Fatal("the namespace still exists after 2 minutes")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
