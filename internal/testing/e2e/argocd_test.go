package e2e_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// refreshAnnotation makes Argo CD compare an Application. Argo CD removes the annotation after the comparison.
const refreshAnnotation = "argocd.argoproj.io/refresh"

// argoCD is the agent of hosts with the reconciler argocd.
type argoCD struct{ cluster *kubetest.Server }

func (argoCD) reconciler() string { return "argocd" }

func (argoCD) reportsDriftWhileSuspended() bool { return true }

// settings also has the default project, which Argo CD's web server would create.
func (argoCD) settings() string {
	text := `
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: only-the-web-server-needs-it}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`
	for _, name := range []string{"argocd-cm", "argocd-rbac-cm", "argocd-cmd-params-cm", "argocd-gpg-keys-cm", "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm"} {
		data := "{}"
		if name == "argocd-cm" {
			data = "{timeout.reconciliation: 10s, timeout.reconciliation.jitter: 0s}"
		}
		text += fmt.Sprintf(
			"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}, data: %s}\n",
			name,
			data,
		)
	}
	return text
}

// start starts the application controller, the repository server and a cache. The controller serves metrics on every address,
// which no flag turns off: see [runInOwnNetwork].
func (a argoCD) start(t *testing.T) {
	t.Helper()
	cluster := a.cluster
	cache := miniredis.NewMiniRedis()
	if err := cache.StartAddr("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cache.Close)
	advanceClock(t, cache)

	ports, err := processtest.FreePorts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	port := func(i int) string { return strconv.Itoa(ports[i]) }
	repositories := "127.0.0.1:" + port(0)

	startAgent(t, cluster, "argocd", "argocd-repo-server", []string{
		"--address", "127.0.0.1", "--port", port(0),
		"--metrics-address", "127.0.0.1", "--metrics-port", port(1),
		"--redis", cache.Addr(), "--disable-tls", "--revision-cache-expiration", "3s",
	})
	eventually(t, func() error {
		conn, err := net.Dial("tcp", repositories)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	startAgent(t, cluster, "argocd", "argocd-application-controller", []string{
		"--kubeconfig", writeKubeconfig(t, cluster), "--namespace", "argocd",
		"--repo-server", repositories, "--repo-server-plaintext", "--redis", cache.Addr(),
		"--metrics-port", port(2),
		"--app-resync", "10", "--app-resync-jitter", "0", "--self-heal-timeout-seconds", "2",
		"--status-processors", "4", "--operation-processors", "4",
	})
}

// advanceClock lets entries of the cache expire. The clock of miniredis stands still, so a branch would keep its cached commit
// for ever.
func advanceClock(t *testing.T, cache *miniredis.Miniredis) {
	t.Helper()
	ended := make(chan struct{})
	t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		for {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(time.Second):
				cache.FastForward(time.Second)
			}
		}
	}()
}

// setSuspended waits for a comparison that began after the change. An earlier comparison may still revert changes by hand.
func (a argoCD) setSuspended(t *testing.T, root string, suspended bool) {
	t.Helper()
	patch(t, a.cluster, applications, "argocd", root, map[string]any{
		"spec": map[string]any{"syncPolicy": map[string]any{"automated": map[string]any{"enabled": !suspended}}},
	})
	a.triggerReconcile(t, root)
	eventually(t, func() error {
		application := a.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", root)
		if annotation := field(application, "metadata", "annotations", refreshAnnotation); annotation != nil {
			return fmt.Errorf("%s has not been compared since %s: %v", root, refreshAnnotation, annotation)
		}
		return nil
	})
}

func (a argoCD) triggerReconcile(t *testing.T, root string) {
	t.Helper()
	annotate(t, a.cluster, applications, "argocd", root, refreshAnnotation, "normal")
}

func (a argoCD) describeStatus(t *testing.T, names ...string) string {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		application := a.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
		fmt.Fprintf(
			&text,
			"%s: sync %v, health %v, conditions %v, %v; ",
			name,
			field(application, "status", "sync"),
			field(application, "status", "health"),
			field(application, "status", "conditions"),
			field(application, "status", "operationState"),
		)
	}
	return text.String()
}
