package provider_test

import (
	"encoding/json"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
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
			list := []any{}
			for _, one := range agent.Permissions(reconciler) {
				if one.Use == agent.UseAlways {
					list = append(list, map[string]any{"apiGroups": []any{one.Group}, "resources": []any{one.Resource}, "verbs": one.Verbs})
				}
			}
			rules, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			user := "permitted-" + reconciler
			w := providertest.New(startProvider)
			reach := asUser(t, server, user, string(rules))
			appliedAgent(t, w, onCluster(reach, anAgent(user, map[string]any{"reconciler": reconciler, "confine": false})))
			if _, said := w.Apply(t.Context(), onCluster(reach, nil)); said.Err() != nil {
				t.Fatal(said)
			}
		})
	}
}
