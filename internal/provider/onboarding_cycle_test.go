package provider_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The test plans the guide's cycles, with terraform_data instead of a cloud's cluster.
func TestTheGuideOnOnboardingSaysWhenTerraformFindsACycle(t *testing.T) {
	t.Parallel()
	const cluster = "azurerm_kubernetes_cluster.east.kube_config[0].host"
	replaceCloud := func(block string) string {
		return strings.NewReplacer(cluster, "terraform_data.east.output.environment", `resource "azurerm_kubernetes_cluster"`, `resource "terraform_data"`, "tags =", "input =").
			Replace(block)
	}
	circle := replaceCloud(guideBlock(t, onboardingGuide, "tags = { environment = flotilla_environment.dev.name }"))
	aliased := replaceCloud(guideBlock(t, onboardingGuide, `alias    = "clusters"`))
	if strings.Contains(circle+aliased, "azurerm") {
		t.Fatalf("the text still has resources of a cloud:\n%s%s", circle, aliased)
	}
	count := regexp.MustCompile("`(count = length\\(flotilla_cluster_claim.drones.clusters\\) \\+ 1)`").
		FindStringSubmatch(guideText(t, onboardingGuide))
	if count == nil {
		t.Fatal("the guide has no pool with a spare cluster")
	}
	counted := `
provider "flotilla" {
  clusters = { for i, made in terraform_data.east : "east-${i}" => { host = made.output } }
}

resource "terraform_data" "east" {
  ` + count[1] + `
  input = "https://east.example.com"
}

resource "flotilla_cluster_claim" "drones" {
  name        = "drones"
  number      = 1
  fleet       = provider::flotilla::fleet({ environment = "dev" })
  gitops_repo = { url = "gitops.git", branch = "dev" }
}
`
	const environment = "resource \"flotilla_environment\" \"dev\" {\n  name        = \"dev\"\n  gitops_repo = { url = \"gitops.git\", branch = \"dev\" }\n}\n"
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + environment + circle})
			expectCycle := func(names ...string) {
				t.Helper()
				_, output, err := w.try("plan", "-input=false", "-no-color")
				output = strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(output)), " ")
				for _, want := range append(names, "Error: Cycle: ", "terraform_data.east", "/flotilla/flotilla\"]") {
					if err == nil || !strings.Contains(output, want) {
						t.Fatalf("%v, without %s: %s", err, want, output)
					}
				}
			}
			expectCycle("flotilla_environment.dev")
			writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+counted)
			expectCycle("flotilla_cluster_claim.drones")
			// A second provider block breaks the cycle: the agent is planned, although its cluster is unknown.
			const location = "  gitops_repo = { url = \"gitops.git\", branch = \"dev\" }"
			for _, further := range []string{"  cluster_type = \"store\"\n" + strings.Replace(location, "gitops.git", "https://git.example.com/gitops", 1), "  name = \"dev\"\n  fleet = provider::flotilla::fleet({ environment = \"dev\" })\n" + location} {
				aliased = strings.Replace(aliased, "  # …", further, 1)
			}
			_, clusterBlock, _ := strings.Cut(circle, "\nresource ")
			writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+environment+aliased+"\nresource "+clusterBlock)
			if planned := w.run("plan", "-input=false", "-no-color"); !strings.Contains(planned, "flotilla_agent.east will be created") {
				t.Errorf("the plan does not create the agent:\n%s", planned)
			}
			// A rollout reads clusters that depend on the commit of its own assignment.
			rollout := strings.Replace(clusterBlock, "flotilla_environment.dev.name", "flotilla_assignment.dev.commit", 1)
			writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+aliased+"\nresource "+rollout+`
resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = provider::flotilla::fleet({ environment = "dev" })
  gitops_repo = { url = "gitops.git", branch = "dev" }
  evidence    = data.flotilla_compliance.dev.evidence
  rollout     = { stages = [] }
}
`)
			expectCycle("flotilla_assignment.dev", "data.flotilla_compliance.dev")
		})
	}
}
