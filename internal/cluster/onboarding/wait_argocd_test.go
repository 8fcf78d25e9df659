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

// An Application that follows a folder is healthy before the Applications in the folder are.
func TestWaitingForArgoCDIsWaitingForWhatItHasBrought(t *testing.T) {
	t.Parallel()
	const commit = "1f2e3d4c5b6a79880123456789abcdef01234567"
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	with := settings("waited-for")
	with.Reconciler = "argocd"
	objects := rendered(t, with)
	health := func(name, is string) {
		t.Helper()
		application := server.Get(t, "argoproj.io/v1alpha1", "Application", "waited-for", name)
		server.SetStatus(t, application, map[string]any{
			"health": map[string]any{"status": is}, "reconciledAt": "2026-11-21T20:30:00Z",
			"sync": map[string]any{"status": "Synced", "revision": commit, "comparedTo": application.Object["spec"]},
		})
	}
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
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
			health(name, "Healthy")
		}
		health("web", "Progressing")
		wanted.Following = &onboarding.Following{
			Location: folder.Location{URL: with.Repository.URL, Branch: with.Repository.Branch},
			Cluster:  with.Cluster, ClusterType: with.ClusterType,
		}
		limited, end := context.WithCancel(ctx)
		defer end()
		asked := 0
		wanted.Following.Tip = func(context.Context) (string, error) {
			if asked++; asked == 3 { // the time is over
				end()
			}
			return commit, nil
		}
		_, err := onboarding.Apply(limited, cluster, wanted)
		if err == nil || !strings.Contains(err.Error(), "Application waited-for/web is progressing") {
			t.Errorf("what is not ready is not waited for: %v", err)
		}
		health("web", "Healthy")
		if _, err := onboarding.Apply(ctx, cluster, wanted); err != nil {
			t.Errorf("what is ready is waited for: %v", err)
		}
		// Nothing makes these Applications, so that rights on what makes some are not needed; those on Applications are.
		for denied, isEnough := range map[string]bool{"applicationsets": true, "applications": false} {
			if _, err := onboarding.Apply(ctx, deniedList{cluster, denied}, wanted); (err == nil) != isEnough {
				t.Errorf("without the right to list %s: %v", denied, err)
			}
		}
	})
}

// deniedList is a cluster of which a kind may not be listed.
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
