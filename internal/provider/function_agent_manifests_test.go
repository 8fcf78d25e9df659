package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestAgentManifestsAreKnownOnceAllArgumentsAre(t *testing.T) {
	t.Parallel()
	evaluate := func(cluster any) any {
		t.Helper()
		manifests, err := providertest.New(startProvider).Evaluate(t.Context(), providertest.Call{
			Function: "agent_manifests", Arguments: []any{map[string]any{
				"cluster": cluster, "cluster_type": "store",
				"gitops_repo": map[string]any{"url": "https://git.example.com/platform/gitops", "branch": "dev"},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return manifests
	}
	if manifests, isUnknown := evaluate(providertest.Unknown{Then: "store-17"}).(providertest.Unknown); !isUnknown {
		t.Errorf("the manifests of an unknown cluster are %v", manifests)
	}
	var kinds []string
	manifests, _ := evaluate("store-17").([]any)
	for _, text := range manifests {
		var object struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text.(string)), &object); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, object.Kind)
	}
	if got := strings.Join(kinds, " "); got != "Namespace GitRepository Kustomization Kustomization" {
		t.Errorf("the kinds are %q", got)
	}
}

// Terraform, not the provider, marks results of secret arguments as sensitive.
func TestAgentManifestsOfASecretAreSecret(t *testing.T) {
	acceptancetest.Only(t)
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
