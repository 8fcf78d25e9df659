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

// TestThePermissionsOfTheGuideAreEnough uses the guide's permissions for an agent with credentials: a Role in the agent's
// namespace and a ClusterRole. Package onboarding proves the other permissions, and that each is needed.
func TestThePermissionsOfTheGuideAreEnough(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	agentOf := func(reconciler string, further ...any) map[string]any {
		return agentAttributes("permitted-"+reconciler, with(map[string]any{"reconciler": reconciler, "confine": false}, further...))
	}
	onHub := func(namespace string, registration, credentials map[string]any) map[string]any {
		credentials["token"] = "a-t0ken"
		return agentOf("argocd-hub", "namespace", namespace, "cluster", "store-1", "hub", "edge-1", "environment", "dev",
			"registration", registration, "credentials_wo", credentials)
	}
	registered := onHub("permitted-registered", map[string]any{"secret": "cluster-store-1"}, map[string]any{})
	for name, test := range map[string]struct {
		agent map[string]any
		use   agenttest.Use
	}{
		"argocd": {agent: agentOf("argocd")}, "config-sync": {agent: agentOf("config-sync")}, "fleet": {agent: agentOf("fleet")}, "flux": {agent: agentOf("flux")},
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
			connection := connectWithPermissions(t, server, namespace, namespace, permitted)
			if test.use == agenttest.Registered {
				server.Apply(t, "apiVersion: v1\nkind: Secret\n"+
					"metadata: {name: cluster-store-1, namespace: "+namespace+", labels: {argocd.argoproj.io/secret-type: cluster}}\n"+
					"stringData: {name: store-1, server: \"https://store-1.example.com\", config: '{}'}\n")
			}
			applyAgent(t, w, onCluster(connection, test.agent))
			checkPlanPermissions(t, w, server, test.agent, permitted)
			if _, diags := w.Apply(t.Context(), onCluster(connection, nil)); diags.Err() != nil {
				t.Fatal(diags)
			}
		})
	}
}

// connectWithPermissions connects as a user with a Role for the permissions of the namespace, and a ClusterRole for the others.
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

// checkPlanPermissions plans without permission to delete, and with read permissions alone.
func checkPlanPermissions(
	t *testing.T,
	w *providertest.Workspace,
	server *kubetest.Server,
	agent map[string]any,
	permissions []agenttest.Permission,
) {
	t.Helper()
	for name, drop := range map[string][]string{"planner": {"delete"}, "reader": {"delete", "create", "patch"}} {
		var rules []agenttest.Permission
		for _, one := range permissions {
			one.Verbs = slices.DeleteFunc(slices.Clone(one.Verbs), func(verb string) bool { return slices.Contains(drop, verb) })
			rules = append(rules, one)
		}
		namespace := agent["namespace"].(string)
		connection := connectWithPermissions(t, server, name+"-"+namespace, namespace, rules)
		plan, diags := w.Plan(t.Context(), onCluster(connection, agent))
		switch {
		case name == "reader" && !diags.Has("Credentials of the cluster lack permissions"):
			t.Errorf("a plan with read permissions says %s", diags)
		case name == "planner" && (diags.Err() != nil || !plan.Empty()):
			t.Errorf("a plan without permission to delete says %s", diags)
		}
	}
}

// TestTheRightsToReadReportsAreEnough expects a verdict from an account with the guide's rights, which cannot read Secrets.
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
	connection := map[string]any{"drone-1": connectAs(t, server, "reads-reports", agenttest.Rules(rights))}
	last := rights[len(rights)-1]
	server.AwaitPermission(t, "reads-reports", "", last.Group, last.Resource, "list")
	values, diags := readCompliance(t, url, map[string]any{"clusters": connection}, map[string]any{"feedback": map[string]any{"clusters": true}})
	drone := values["clusters"].(map[string]any)["drone-1"].(map[string]any)
	if text := fmt.Sprint(drone["message"]); diags.Err() != nil || strings.Contains(text, "may not") || !strings.Contains(text, "follows") {
		t.Errorf("the message is %s; diagnostics: %s", text, diags)
	}
	clusters := map[string]any{"drone-1": with(connection["drone-1"].(map[string]any))}
	_, diags = readFacts(t, clusters, map[string]any{"requested": true, "sources": map[string]any{"hub": "drone-1"}})
	if diags.Err() == nil || !strings.Contains(diags.String(), "secrets") {
		t.Errorf("with these rights, Secrets are read: %s", diags)
	}
}
