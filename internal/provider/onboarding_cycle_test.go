package provider_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// What the guide on onboarding says of a cycle, with a resource of Terraform's own in place of a cloud's cluster.
func TestTheGuideOnOnboardingSaysWhenTerraformFindsACycle(t *testing.T) {
	t.Parallel()
	const cluster = "azurerm_kubernetes_cluster.east.kube_config[0].host"
	ours := func(block string) string {
		return strings.NewReplacer(cluster, "terraform_data.east.output.environment", `resource "azurerm_kubernetes_cluster"`, `resource "terraform_data"`, "tags =", "input =").Replace(block)
	}
	circle := ours(guideBlock(t, onboardingGuide, "tags = { environment = flotilla_environment.dev.name }"))
	aliased := ours(guideBlock(t, onboardingGuide, `alias    = "clusters"`))
	if strings.Contains(circle+aliased, "azurerm") {
		t.Fatalf("the guide has more of a cloud:\n%s%s", circle, aliased)
	}
	const environment = "resource \"flotilla_environment\" \"dev\" {\n  name        = \"dev\"\n  gitops_repo = { url = \"gitops.git\", branch = \"dev\" }\n}\n"
	for name, tool := range oneTool(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + environment + circle})
			_, said, err := w.try("plan", "-input=false", "-no-color")
			said = strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(said)), " ")
			if err == nil || !strings.Contains(said, "Error: Cycle: ") || !strings.Contains(said, "flotilla_environment.dev") ||
				!strings.Contains(said, "terraform_data.east") || !strings.Contains(said, "/flotilla/flotilla\"]") {
				t.Fatalf("%v: %s", err, said)
			}
			// With a configuration of the provider of its own, it is planned, though the cluster is not known yet.
			const place = "  gitops_repo = { url = \"gitops.git\", branch = \"dev\" }"
			for _, further := range []string{"  cluster_type = \"store\"\n" + strings.Replace(place, "gitops.git", "https://git.example.com/gitops", 1), "  name = \"dev\"\n  fleet = provider::flotilla::fleet({ environment = \"dev\" })\n" + place} {
				aliased = strings.Replace(aliased, "  # …", further, 1)
			}
			_, made, _ := strings.Cut(circle, "\nresource ")
			writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+environment+aliased+"\nresource "+made)
			if planned := w.run("plan", "-input=false", "-no-color"); !strings.Contains(planned, "flotilla_agent.east will be created") {
				t.Errorf("it is planned as\n%s", planned)
			}
		})
	}
}
