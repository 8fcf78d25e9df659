package provider_test

import (
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/agenttest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// An account with the permissions that the guide always lists sets up an agent, compares it and removes it. Package onboarding
// proves the other permissions, and that each of them is needed.
func TestThePermissionsOfTheGuideAreEnough(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, reconciler := range []string{"argocd", "config-sync", "fleet", "flux"} {
		t.Run(reconciler, func(t *testing.T) {
			t.Parallel()
			always := slices.DeleteFunc(agenttest.Permissions(reconciler), func(one agenttest.Permission) bool {
				return one.Use != agenttest.Always
			})
			user := "permitted-" + reconciler
			w := providertest.New(startProvider)
			reach := asUser(t, server, user, agenttest.Rules(always))
			appliedAgent(t, w, onCluster(reach, anAgent(user, map[string]any{"reconciler": reconciler, "confine": false})))
			if _, said := w.Apply(t.Context(), onCluster(reach, nil)); said.Err() != nil {
				t.Fatal(said)
			}
		})
	}
}
