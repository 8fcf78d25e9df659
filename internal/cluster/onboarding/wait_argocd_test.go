package onboarding_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// An Application that follows a folder may be healthy before the Applications in the folder are.
func TestAnApplyWaitsForArgoCDsApplications(t *testing.T) {
	t.Parallel()
	const commit = "1f2e3d4c5b6a79880123456789abcdef01234567"
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	config := settings("waited-for")
	config.Reconciler = "argocd"
	objects := renderObjects(t, config)
	setHealth := func(name, health string) {
		t.Helper()
		application := server.Get(t, "argoproj.io/v1alpha1", "Application", "waited-for", name)
		server.SetStatus(t, application, map[string]any{
			"health": map[string]any{"status": health}, "reconciledAt": "2026-11-21T20:30:00Z",
			"sync": map[string]any{"status": "Synced", "revision": commit, "comparedTo": application.Object["spec"]},
		})
	}
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		wanted := onboarding.Wanted{Objects: objects}
		if _, err := onboarding.Apply(ctx, cluster, wanted); err != nil {
			t.Error(err)
		}
		server.Apply(t, `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: waited-for, labels: {flotilla.dev/owner: dev, flotilla.dev/host: store}}
spec: {project: default, destination: {namespace: web}, source: {repoURL: "https://git.example.com/web", path: ., targetRevision: v1}}
`)
		for _, name := range []string{"flotilla-cluster-type", "flotilla-cluster"} {
			setHealth(name, "Healthy")
		}
		setHealth("web", "Progressing")
		wanted.Following = &onboarding.Following{
			Location: folder.Location{URL: config.Repository.URL, Branch: config.Repository.Branch},
			Cluster:  config.Cluster, ClusterType: config.ClusterType,
		}
		limited, end := context.WithCancel(ctx)
		defer end()
		calls := 0
		wanted.Following.Tip = func(context.Context) (string, error) {
			if calls++; calls == 3 { // ends the wait
				end()
			}
			return commit, nil
		}
		_, err := onboarding.Apply(limited, cluster, wanted)
		if err == nil || !strings.Contains(err.Error(), "Application waited-for/web is progressing") {
			t.Errorf("got %v, want an error about the Application that is not ready", err)
		}
		setHealth("web", "Healthy")
		if _, err := onboarding.Apply(ctx, cluster, wanted); err != nil {
			t.Errorf("got %v although all Applications are ready", err)
		}
		// No ApplicationSet creates these Applications, so the right to list Applications suffices.
		for denied, isEnough := range map[string]bool{"applicationsets": true, "applications": false} {
			if _, err := onboarding.Apply(ctx, deniedList{cluster, denied}, wanted); (err == nil) != isEnough {
				t.Errorf("without the right to list %s, got %v", denied, err)
			}
		}
	})
}

// deniedList is a cluster that denies listing one kind.
type deniedList struct {
	onboarding.ClusterAPI
	resource string
}

func (d deniedList) List(ctx context.Context, kind kube.ResourceKind, options kube.ListOptions) (kube.List, error) {
	if kind.Resource == d.resource {
		return kube.List{}, &kube.RequestError{Reason: kube.ReasonForbidden}
	}
	return d.ClusterAPI.List(ctx, kind, options)
}
