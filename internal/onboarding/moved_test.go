package onboarding_test

import (
	"context"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/onboarding"
)

// What the clusters of a type share on a hub stays while one of them is there, also when another one changes its type.
func TestAClusterThatChangesItsTypeLeavesWhatOthersShareOnAHub(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	within(t, server, time.Minute, func(ctx context.Context, cluster onboarding.Cluster) {
		clusters := onboarding.Clusters{agent.OnHub: cluster}
		done := map[string]onboarding.Result{}
		for _, name := range []string{"eu-1", "eu-2"} {
			of, err := onboarding.Apply(ctx, clusters, onboarding.Wanted{Objects: rendered(t, hubSettings("moved-hub", name))})
			if err != nil {
				t.Fatal(err)
			}
			done[name] = of
		}
		there := func(name string) bool {
			return server.Get(t, "argoproj.io/v1alpha1", "ApplicationSet", "moved-hub", name) != nil
		}
		shared := "flotilla-dev-" + hubSettings("moved-hub", "eu-1").ClusterType
		if !there(shared) {
			t.Fatalf("there is no %s", shared)
		}
		move := func(name string) {
			t.Helper()
			of := hubSettings("moved-hub", name)
			of.ClusterType = "another"
			_, err := onboarding.Apply(ctx, clusters, onboarding.Wanted{Objects: rendered(t, of), Records: done[name].Records, UIDs: done[name].UIDs})
			if err != nil {
				t.Fatal(err)
			}
		}
		move("eu-1")
		if !there(shared) || !there("flotilla-dev-another") {
			t.Errorf("the first has another type: the former one is followed %v, the other one %v", there(shared), there("flotilla-dev-another"))
		}
		move("eu-2")
		if there(shared) {
			t.Errorf("nobody has the former type, and %s is there", shared)
		}
	})
}
