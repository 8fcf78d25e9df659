package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/kubetest"
)

var kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

// fluxRoot follows a folder.
const fluxRoot = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: "%[2]s", namespace: flux-system}
spec: {interval: 10s, url: "%[3]s", ref: {branch: "%[4]s"}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: "%[1]s", namespace: flux-system}
spec:
  suspend: %[6]t
  interval: 10m
  retryInterval: 5s
  prune: true
  wait: true
  timeout: 2m
  path: "./%[5]s"
  sourceRef: {kind: GitRepository, name: "%[2]s"}
`

// flux is the agent of hosts whose reconciler is flux.
type flux struct{ cluster *kubetest.Server }

func (flux) reconciler() string { return "flux" }

func (flux) comparesAlways() bool { return false }

// start starts kustomize-controller, and a stand-in for source-controller,
// which cannot be built from the module proxy.
func (f flux) start(t *testing.T) {
	t.Helper()
	cluster := f.cluster
	cluster.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	startSources(t, cluster)
	startAgent(t, cluster, "kustomize-controller", "kustomize-controller", []string{
		"--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
		"--enable-leader-election=false", "--watch-all-namespaces=true",
		"--requeue-dependency", "2s", "--concurrent", "20",
		"--feature-gates=CancelHealthCheckOnNewRevision=true",
	})
}

func (f flux) follow(t *testing.T, root root) {
	t.Helper()
	source := fmt.Sprintf("flotilla-%x", sha256.Sum256([]byte(root.repository+" "+root.branch)))[:17]
	f.cluster.Apply(t, fmt.Sprintf(fluxRoot, root.name(), source, root.repository, root.branch, root.path, root.held))
}

func (f flux) nudge(t *testing.T, root root) {
	t.Helper()
	annotate(t, f.cluster, kustomizations, "flux-system", root.name(),
		"reconcile.fluxcd.io/requestedAt", time.Now().Format(time.RFC3339Nano))
}

func (f flux) says(t *testing.T, names ...string) string {
	t.Helper()
	var said strings.Builder
	for _, name := range names {
		kustomization := f.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", name)
		fmt.Fprintf(&said, "%s: %v, conditions %v; ", name, field(kustomization, "status", "lastAppliedRevision"), field(kustomization, "status", "conditions"))
	}
	return said.String()
}
