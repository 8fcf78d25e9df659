package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// manyWorkloads is a fleet of a hundred workloads, ten on each of ten hosts; the tag of one of them is
// known only after apply.
const manyWorkloads = `
resource "terraform_data" "tag" {
  input = "v1"
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [for i in range(10) : { name = "host-${i}" }]
    workloads = [for i in range(100) : {
      name      = "app-${i}"
      workspace = "team"
      deployment_targets = { live = {
        environment = "dev"
        manifests   = { repo = "https://git.example.com/app-${i}", tag = i == 7 ? terraform_data.tag.output : "v1" }
      } }
    }]
    assignments       = [for i in range(100) : { cluster_type = "host-${i % 10}", deployment_target = "app-${i}-live" }]
    config_containers = [{ name = "all", data = { LOG_LEVEL = "info" } }]
  })
}

data "flotilla_scheduling" "test" {
  fleet = local.fleet
}

data "flotilla_config_snapshots" "test" {
  fleet        = local.fleet
  cluster_type = "host-7"
}

output "known_before_apply" {
  value = length(data.flotilla_scheduling.test.assignments) + length(data.flotilla_config_snapshots.test.snapshots)
}

resource "flotilla_assignment" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "dev" }
  protection  = { max_removed = 100 }
}
`

func TestAnUnknownTagMakesOnlyItsOwnHostUnknown(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	checks := []plancheck.PlanCheck{
		plancheck.ExpectUnknownValue(assignment, tfjsonpath.New("content")),
		plancheck.ExpectKnownOutputValue("known_before_apply", knownvalue.Int64Exact(110)),
	}
	config := repo.provider + fmt.Sprintf(strings.ReplaceAll(strings.ReplaceAll(manyWorkloads, "%", "%%"), "%%q", "%q"), repo.url)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps: []resource.TestStep{{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             checks,
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			},
		}},
	})
}
