package provider_test

import (
	"encoding/json"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// An account with the permissions that the guide lists sets up an agent, compares it and removes it. Without any one of them,
// one of these fails.
func TestThePermissionsOfTheGuideAreEnoughAndNeeded(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, reconciler := range []string{"argocd", "config-sync", "fleet", "flux"} {
		t.Run(reconciler, func(t *testing.T) {
			t.Parallel()
			all := agent.Permissions(reconciler)
			rules := func(without int) string {
				list := []any{}
				for i, one := range all {
					if i != without {
						list = append(list, map[string]any{"apiGroups": []any{one.Group}, "resources": []any{one.Resource}, "verbs": one.Verbs})
					}
				}
				text, err := json.Marshal(list)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			user := "permitted-" + reconciler
			given := anAgent(user, map[string]any{"reconciler": reconciler, "confine": false})
			w := providertest.New(startProvider)
			reach := asUser(t, server, user, rules(-1))
			appliedAgent(t, w, onCluster(reach, given))
			if _, said := w.Apply(t.Context(), onCluster(reach, nil)); said.Err() != nil {
				t.Fatal(said)
			}
			for i, one := range all {
				w := providertest.New(startProvider)
				reach := asUser(t, server, user, rules(i))
				_, said := w.Apply(t.Context(), onCluster(reach, given))
				if said.Err() == nil {
					_, said = w.Apply(t.Context(), onCluster(reach, nil))
				}
				if said.Err() == nil {
					t.Errorf("without %v everything works", one)
				}
				asUser(t, server, user, rules(-1))
				if _, said := w.Apply(t.Context(), onCluster(reach, nil)); said.Err() != nil {
					t.Fatal(said)
				}
			}
		})
	}
}
