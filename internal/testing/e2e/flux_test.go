package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

// flux is the agent of hosts with the reconciler flux.
type flux struct{ cluster *kubetest.Server }

func (flux) reconciler() string { return "flux" }

func (flux) reportsDriftWhileSuspended() bool { return false }

func (flux) settings() string {
	return "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}\n"
}

// start starts kustomize-controller and a stand-in for source-controller and source-watcher, which the Go module proxy does not
// have.
func (f flux) start(t *testing.T) {
	t.Helper()
	cluster := f.cluster
	startSourceController(t, cluster)
	startAgent(t, cluster, "kustomize-controller", "kustomize-controller", []string{
		"--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
		"--enable-leader-election=false", "--watch-all-namespaces=true",
		"--requeue-dependency", "2s", "--concurrent", "20",
		"--feature-gates=CancelHealthCheckOnNewRevision=true,ExternalArtifact=true",
	})
}

func (f flux) setSuspended(t *testing.T, root string, suspended bool) {
	t.Helper()
	patch(t, f.cluster, kustomizations, "flux-system", root, map[string]any{"spec": map[string]any{"suspend": suspended}})
}

func (f flux) triggerReconcile(t *testing.T, root string) {
	t.Helper()
	annotate(t, f.cluster, kustomizations, "flux-system", root,
		"reconcile.fluxcd.io/requestedAt", time.Now().Format(time.RFC3339Nano))
}

func (f flux) describeStatus(t *testing.T, names ...string) string {
	t.Helper()
	var text strings.Builder
	for _, name := range names {
		kustomization := f.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", name)
		fmt.Fprintf(
			&text,
			"%s: %v, conditions %v; ",
			name,
			field(kustomization, "status", "lastAppliedRevision"),
			field(kustomization, "status", "conditions"),
		)
	}
	return text.String()
}
