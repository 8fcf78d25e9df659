package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The generated configuration of listed agents must plan no changes.
func TestAgentsOfAClusterAreListed(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	objectsIn := func(namespace string) string {
		return fmt.Sprint(server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace, "flotilla-cluster"))
	}
	repo := map[string]any{"url": "https://git.example.com/gitops", "branch": "dev", "path": "clusters/all"}
	further := map[string]map[string]any{
		"listed-flux":   {"gitops_repo": repo, "decryption": map[string]any{"secret": "sops-age"}, "interval": "30s", "timeout": "10m"},
		"listed-argocd": {"reconciler": "argocd", "name": "second"},
	}
	for namespace, attributes := range further {
		applyAgent(t, providertest.New(startProvider), onCluster(connectionTo(server), agentAttributes(namespace, attributes)))
	}
	before := objectsIn("listed-flux")

	w := providertest.New(startProvider)
	provider := onCluster(connectionTo(server), nil)
	identities, resources, diags := w.Query(t.Context(), provider, "flotilla_agent", nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	found := 0
	for i, identity := range identities {
		namespace, _ := identity["namespace"].(string)
		if further[namespace] == nil {
			continue // an agent of another test
		}
		found++
		generated := resources[i]
		if namespace == "listed-flux" {
			want := "edge-1 edge flux <nil> listed-flux map[branch:dev path:clusters/all url:https://git.example.com/gitops] 30s 10m0s map[secret:flotilla-repository] map[secret:sops-age]"
			var got []any
			for _, name := range []string{"cluster", "cluster_type", "reconciler", "name", "namespace", "gitops_repo", "interval", "timeout", "credentials", "decryption"} {
				got = append(got, generated[name])
			}
			if listed := strings.TrimSuffix(fmt.Sprintln(got...), "\n"); listed != want {
				t.Errorf("got\n%s\nwant\n%s", listed, want)
			}
		}
		for name, value := range generated {
			if value == nil {
				delete(generated, name)
			}
		}
		mine, configuration := providertest.New(startProvider), onCluster(connectionTo(server), generated)
		if diags := mine.ImportIdentity(t.Context(), configuration, agentAddress, identity); len(diags) > 0 {
			t.Fatal(diags)
		}
		plan, diags := mine.Plan(t.Context(), configuration)
		if diags.Err() != nil || !plan.Empty() {
			t.Errorf("%s: the plan after the import is to %s %v: %s", namespace, plan.Change(agentAddress).Action, agentLines(plan), diags)
		}
		if lines := fmt.Sprint(mine.State.Values(agentAddress)["found"]); lines != "[]" {
			t.Errorf("%s: found is %s", namespace, lines)
		}
		if namespace != "listed-flux" {
			continue
		}
		// Later changes are drift, and the configuration can provide the credentials again.
		configuration.Resources[agentAddress].Attributes["interval"] = "45s"
		if lines := fmt.Sprint(agentLines(planAgent(t, mine, configuration))); !strings.Contains(lines, "spec.interval") {
			t.Errorf("the plan of another interval has %s", lines)
		}
		withCredentials := onCluster(connectionTo(server), agentAttributes(namespace, further[namespace]))
		if lines := fmt.Sprint(agentLines(planAgent(t, mine, withCredentials))); lines != "[Secret listed-flux/flotilla-repository is applied]" {
			t.Errorf("with its credentials, the plan has %s", lines)
		}
	}
	if found != 2 {
		t.Errorf("%d agents of this test are listed: %v", found, identities)
	}
	if after := objectsIn("listed-flux"); after != before {
		t.Errorf("an import has changed\n%s\nto\n%s", before, after)
	}
}

func TestAListReportsUnreachableClusters(t *testing.T) {
	t.Parallel()
	unreachable := map[string]any{"host": "http://127.0.0.1:1", "token": "any"}
	reachable := map[string]any{"host": serveLists(t, map[string][]any{"/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations": {}}), "token": "any"}
	query := func(clusters, arguments map[string]any) providertest.Diagnostics {
		_, _, diags := providertest.New(startProvider).
			Query(t.Context(), providertest.Configuration{Provider: map[string]any{"clusters": clusters}}, "flotilla_agent", arguments)
		return diags
	}
	if diags := query(map[string]any{"away": unreachable}, nil); diags.Err() == nil || !diags.Has("Cluster cannot be reached") ||
		!strings.Contains(diags.String(), `Cluster "away": `) {
		t.Errorf("for an unreachable cluster, got %s", diags)
	}
	if diags := query(map[string]any{"away": unreachable, "there": reachable}, map[string]any{"clusters": []any{"there"}}); len(diags) > 0 {
		t.Errorf("for another cluster, got %s", diags)
	}
	if diags := query(map[string]any{"there": reachable}, map[string]any{"clusters": []any{"here"}}); diags.Err() == nil ||
		!diags.Has("Provider does not know this cluster") ||
		!strings.Contains(diags.String(), `"there"`) {
		t.Errorf("for a misspelt cluster, got %s", diags)
	}
	if diags := query(map[string]any{}, nil); len(diags) > 0 {
		t.Errorf("without a cluster, got %s", diags)
	}
}

// TestQueriesListAgents runs the example. The generated configuration must plan no changes. `make matrix` runs this test.
func TestQueriesListAgents(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	tool := allTools(t)["terraform"]
	if !isTerraform(t, tool, 14) {
		t.Skip("Terraform before 1.14, and any other tool, has no queries")
	}
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	applyAgent(t, providertest.New(startProvider), onCluster(connectionTo(server), agentAttributes("queried", nil)))
	w := newWorkdir(t, tool, map[string]string{"required_providers.tf": requiredProviders, "main.tf": fmt.Sprintf(
		"provider \"flotilla\" {\n  clusters = { edge-1 = { kubeconfig = file(%q) } }\n}\n", "edge-1.kubeconfig")})
	if err := os.WriteFile(filepath.Join(w.path, "edge-1.kubeconfig"), []byte(server.Kubeconfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	writeFile(
		t,
		filepath.Join(w.path, "agents.tfquery.hcl"),
		readFile(t, filepath.Join("..", "..", "examples", "list-resources", "flotilla_agent", "list-resource.tfquery.hcl")),
	)
	w.run("query", "-generate-config-out=generated.tf")
	imported := 0
	for _, change := range w.plan().ResourceChanges {
		if change.Change.Importing == nil || !change.Change.Actions.NoOp() {
			t.Errorf("the plan is to %v %s\n%s", change.Change.Actions, change.Address, readFile(t, filepath.Join(w.path, "generated.tf")))
		}
		imported++
	}
	if imported == 0 {
		t.Errorf("nothing is imported of\n%s", readFile(t, filepath.Join(w.path, "generated.tf")))
	}
}

func TestTheAgentListPageMatchesItsSchema(t *testing.T) {
	t.Parallel()
	page := readFile(t, filepath.Join("..", "..", "templates", "list-resources", "agent.md"))
	definition := agent.ListDefinition
	for _, want := range []string{
		definition.MarkdownDescription, fmt.Sprintf("- `clusters` (List of String) %s\n", definition.Attributes["clusters"].GetMarkdownDescription()),
		strings.TrimSpace(readFile(t, filepath.Join("..", "..", "examples", "list-resources", "flotilla_agent", "list-resource.tfquery.hcl"))),
	} {
		if !strings.Contains(page, want) || len(definition.Attributes) != 1 {
			t.Errorf("the page lacks %s", want)
		}
	}
}
