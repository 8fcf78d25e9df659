package onboarding_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m.Run)) }

// settings returns the settings of a cluster that reads with a token. Each test has a namespace of its own.
func settings(namespace string) agent.Settings {
	return agent.Settings{
		Cluster: "store-17", ClusterType: "store", Reconciler: "flux", Namespace: namespace,
		Repository:  folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "dev"},
		Credentials: agent.Credentials{Token: "canary-t0ken-4711"},
	}
}

func renderObjects(t testing.TB, settings agent.Settings) []agent.StagedObject {
	t.Helper()
	objects, problems := agent.Render(settings)
	if agent.Failed(problems) {
		t.Fatal(problems)
	}
	return objects
}

// withClient runs a function with a client of the server.
func withClient(t testing.TB, server *kubetest.Server, deadline time.Duration, do func(ctx context.Context, cluster onboarding.ClusterAPI)) {
	t.Helper()
	answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": {Kubeconfig: server.Kubeconfig()}}, kube.QueryOptions{Deadline: deadline},
		func(ctx context.Context, _ string, c *kube.ClusterClient) (struct{}, error) {
			do(ctx, c)
			return struct{}{}, nil
		})["one"]
	if answer.Err != nil {
		t.Fatal(answer.Err)
	}
}

// removeObjects removes the objects and returns the notes on objects of others.
func removeObjects(ctx context.Context, cluster onboarding.ClusterAPI, removal onboarding.Removal) ([]string, error) {
	removed, err := onboarding.Remove(ctx, cluster, removal)
	return removed.Notes, err
}
