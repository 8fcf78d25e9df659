package onboarding_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// A RootSync reports only that all objects were applied. Its ResourceGroup reports whether they are ready.
func TestAnApplyWaitsForConfigSyncsObjects(t *testing.T) {
	t.Parallel()
	const commit = "1f2e3d4c5b6a79880123456789abcdef01234567"
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	config := settings("synced")
	config.Reconciler = "config-sync"
	objects := renderObjects(t, config)
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		wanted := onboarding.Wanted{Objects: objects}
		if _, err := onboarding.Apply(ctx, cluster, wanted); err != nil {
			t.Error(err)
		}
		setStatus := func(name, status string) {
			t.Helper()
			server.Apply(t, "{apiVersion: kpt.dev/v1alpha1, kind: ResourceGroup, metadata: {name: "+name+", namespace: synced}}")
			server.SetStatus(t, server.Get(t, "kpt.dev/v1alpha1", "ResourceGroup", "synced", name), map[string]any{
				"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Reconciling", "status": "False"}},
				"resourceStatuses": []any{map[string]any{"group": "", "kind": "ConfigMap", "namespace": "web", "name": "web", "status": status}},
			})
		}
		for _, name := range []string{"flotilla-cluster-type", "flotilla-cluster"} {
			server.SetStatus(t, server.Get(t, "configsync.gke.io/v1beta1", "RootSync", "synced", name), map[string]any{
				"observedGeneration": int64(1), "lastSyncedCommit": commit, "sync": map[string]any{"commit": commit},
				"source": map[string]any{"commit": commit}, "conditions": []any{map[string]any{"type": "Syncing", "status": "False"}},
			})
			setStatus(name, "Current")
		}
		setStatus("flotilla-cluster", "InProgress")
		limited, end := context.WithCancel(ctx)
		defer end()
		calls := 0
		wanted.Following = &onboarding.Following{
			Location: folder.Location{URL: config.Repository.URL, Branch: config.Repository.Branch},
			Cluster:  config.Cluster, ClusterType: config.ClusterType,
			Tip: func(context.Context) (string, error) {
				if calls++; calls == 3 { // ends the wait
					end()
				}
				return commit, nil
			},
		}
		if _, err := onboarding.Apply(limited, cluster, wanted); err == nil ||
			!strings.Contains(err.Error(), "ResourceGroup synced/flotilla-cluster has objects that are not ready yet: ConfigMap web/web") {
			t.Errorf("got %v, want an error about the object that is not ready", err)
		}
		setStatus("flotilla-cluster", "Current")
		if _, err := onboarding.Apply(ctx, cluster, wanted); err != nil {
			t.Errorf("got %v although all objects are ready", err)
		}
	})
}
