package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

func TestAgentManifestsAreKnownOnceAllArgumentsAre(t *testing.T) {
	t.Parallel()
	config := `
resource "terraform_data" "cluster" {
  input = "store-17"
}

locals {
  manifests = provider::flotilla::agent_manifests({
    cluster      = terraform_data.cluster.output
    cluster_type = "store"
    gitops_repo  = { url = "https://git.example.com/platform/gitops", branch = "dev" }
  })
}

output "manifests" {
  value = local.manifests
}

output "kinds" {
  value = join(" ", [for text in local.manifests : yamldecode(text).kind])
}
`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownOutputValue("manifests"),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownOutputValue("kinds", knownvalue.StringExact("Namespace GitRepository Kustomization Kustomization")),
			},
		}},
	})
}

func TestAgentManifestsOfASecretAreSecret(t *testing.T) {
	t.Parallel()
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config: `
variable "token" {
  sensitive = true
  default   = "hidden-token"
}

output "is_sensitive" {
  value = issensitive(provider::flotilla::agent_manifests({
    cluster      = "store-17"
    cluster_type = "store"
    gitops_repo  = { url = "https://git.example.com/platform/gitops", branch = "dev" }
    credentials  = { token = var.token }
  }))
}
`,
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("is_sensitive", knownvalue.Bool(true))},
		}},
	})
}

func TestAllMistakesInAgentManifestsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	call := func(settings string) string {
		return "output \"manifests\" {\n  value = provider::flotilla::agent_manifests(" + settings + ")\n}\n"
	}
	for want, settings := range map[string]string{
		`cluster_type: is required.*clusters: unknown attribute; did you mean "cluster"`:      `{ clusters = "a", cluster = "a", gitops_repo = { url = "https://a/b", branch = "dev" } }`,
		`gitops_repo.url: is a repository on this machine.*gitops_repo.branch: branch "a..b"`: `{ cluster = "a", cluster_type = "b", gitops_repo = { url = "/srv/a", branch = "a..b" } }`,
		`must be an object, not a string`:                                                     `"a"`,
	} {
		testSteps(t, resource.TestCase{
			ProtoV6ProviderFactories: factories(),
			Steps: []resource.TestStep{{
				Config:      call(settings),
				ExpectError: regexp.MustCompile("(?s)" + strings.ReplaceAll(want, " ", `\s+(│\s+)?`)),
			}},
		})
	}
}
