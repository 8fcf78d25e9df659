package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/agenttest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// An account with the permissions that the guide lists for an agent with credentials sets up the agent, compares it and removes
// it: a Role in the agent's namespace and a ClusterRole, as the guide divides them. Package onboarding proves the other
// permissions, and that each of them is needed.
func TestThePermissionsOfTheGuideAreEnough(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	on := func(reconciler string, further ...any) map[string]any {
		return agentAttributes("permitted-"+reconciler, with(map[string]any{"reconciler": reconciler, "confine": false}, further...))
	}
	onHub := func(namespace string, registration, credentials map[string]any) map[string]any {
		credentials["token"] = "a-t0ken"
		return on("argocd-hub", "namespace", namespace, "cluster", "store-1", "hub", "edge-1", "environment", "dev",
			"registration", registration, "credentials_wo", credentials)
	}
	registered := onHub("permitted-registered", map[string]any{"secret": "cluster-store-1"}, map[string]any{})
	for name, test := range map[string]struct {
		agent map[string]any
		use   agenttest.Use
	}{
		"argocd": {agent: on("argocd")}, "config-sync": {agent: on("config-sync")}, "fleet": {agent: on("fleet")}, "flux": {agent: on("flux")},
		"argocd-hub": {onHub("permitted-argocd-hub", map[string]any{"server": "https://store-1.example.com"},
			map[string]any{"registration": map[string]any{"token": "b-t0ken"}}), agenttest.Registration},
		"argocd-hub with a Secret of others": {registered, agenttest.Registered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, reconciler := test.agent["namespace"].(string), test.agent["reconciler"].(string)
			permitted := slices.DeleteFunc(agenttest.Permissions(reconciler), func(one agenttest.Permission) bool {
				return one.Use != agenttest.Always && one.Use != agenttest.Credentials && one.Use != test.use
			})
			w := providertest.New(startProvider)
			reach := connectWithPermissions(t, server, namespace, namespace, permitted)
			if test.use == agenttest.Registered {
				server.Apply(t, "apiVersion: v1\nkind: Secret\n"+
					"metadata: {name: cluster-store-1, namespace: "+namespace+", labels: {argocd.argoproj.io/secret-type: cluster}}\n"+
					"stringData: {name: store-1, server: \"https://store-1.example.com\", config: '{}'}\n")
			}
			applyAgent(t, w, onCluster(reach, test.agent))
			checkPlanPermissions(t, w, server, test.agent, permitted)
			if _, said := w.Apply(t.Context(), onCluster(reach, nil)); said.Err() != nil {
				t.Fatal(said)
			}
		})
	}
}

// asPermitted is how a user with permissions is reached: those of a namespace by a Role there, the others by a ClusterRole.
func connectWithPermissions(t *testing.T, server *kubetest.Server, user, namespace string, all []agenttest.Permission) map[string]any {
	t.Helper()
	var everywhere, within []agenttest.Permission
	for _, one := range all {
		if one.InNamespace() {
			within = append(within, one)
		} else {
			everywhere = append(everywhere, one)
		}
	}
	certificate, key := server.PermitIn(t, user, agenttest.Rules(everywhere), namespace, agenttest.Rules(within))
	server.AwaitPermission(t, user, "", everywhere[0].Group, everywhere[0].Resource, everywhere[0].Verbs[0])
	server.AwaitPermission(t, user, namespace, within[0].Group, within[0].Resource, within[0].Verbs[0])
	return map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "client_certificate": certificate, "client_key": key}
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
		namespace := agent["namespace"].(string)
		reach := connectWithPermissions(t, server, name+"-"+namespace, namespace, rules)
		plan, said := w.Plan(t.Context(), onCluster(reach, agent))
		switch {
		case name == "reader" && !said.Has("Credentials of the cluster lack permissions"):
			t.Errorf("a plan that may only read says %s", said)
		case name == "planner" && (said.Err() != nil || !plan.Empty()):
			t.Errorf("a plan that may not delete says %s", said)
		}
	}
}

// An account with the rights that the guide lists for reports has a verdict about each link of the chain, and reads no Secret.
func TestTheRightsToReadReportsAreEnough(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	var rights []agenttest.Permission
	for _, kind := range reconciler.Named("flux").ListedKinds() {
		rights = append(rights, agenttest.Permission{Group: kind.Group, Resource: kind.Resource, Verbs: []string{"list"}})
	}
	reach := map[string]any{"drone-1": connectAs(t, server, "reads-reports", agenttest.Rules(rights))}
	last := rights[len(rights)-1]
	server.AwaitPermission(t, "reads-reports", "", last.Group, last.Resource, "list")
	values, said := readCompliance(t, url, map[string]any{"clusters": reach}, map[string]any{"feedback": map[string]any{"clusters": true}})
	drone := values["clusters"].(map[string]any)["drone-1"].(map[string]any)
	if text := fmt.Sprint(drone["message"]); said.Err() != nil || strings.Contains(text, "may not") || !strings.Contains(text, "follows") {
		t.Errorf("it says %s; %s", text, said)
	}
	reads := map[string]any{"drone-1": with(reach["drone-1"].(map[string]any))}
	_, said = readFacts(t, reads, map[string]any{"requested": true, "sources": map[string]any{"hub": "drone-1"}})
	if said.Err() == nil || !strings.Contains(said.String(), "secrets") {
		t.Errorf("with these rights, Secrets are read: %s", said)
	}
}
