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
			agent := anAgent(user, map[string]any{"reconciler": reconciler, "confine": false})
			appliedAgent(t, w, onCluster(reach, agent))
			checkPlanPermissions(t, w, server, agent, always)
			if _, said := w.Apply(t.Context(), onCluster(reach, nil)); said.Err() != nil {
				t.Fatal(said)
			}
		})
	}
}

// checkPlanPermissions plans with all permissions but delete, and with read permissions alone.
func checkPlanPermissions(
	t *testing.T,
	w *providertest.Workspace,
	server *kubetest.Server,
	agent map[string]any,
	always []agenttest.Permission,
) {
	t.Helper()
	for name, drop := range map[string][]string{"planner": {"delete"}, "reader": {"delete", "create", "patch"}} {
		var rules []agenttest.Permission
		for _, one := range always {
			one.Verbs = slices.DeleteFunc(slices.Clone(one.Verbs), func(verb string) bool { return slices.Contains(drop, verb) })
			rules = append(rules, one)
		}
		reach := asUser(t, server, name+"-"+agent["cluster"].(string)+"-"+agent["reconciler"].(string), agenttest.Rules(rules))
		plan, said := w.Plan(t.Context(), onCluster(reach, agent))
		switch {
		case name == "reader" && !said.Has("Credentials of the cluster lack permissions"):
			t.Errorf("a plan that may only read says %s", said)
		case name == "planner" && (said.Err() != nil || !plan.Empty()):
			t.Errorf("a plan that may not delete says %s", said)
		}
	}
}
