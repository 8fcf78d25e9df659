package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const advisedFleet = `
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "drone", labels = { region = "east" } }, { name = "large" }]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        test = { environment = "dev", manifests = { repo = "https://git.example.com/app" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [
      { name = "all", data = { LEVEL = "info", EXTRA = "x" } },
      { name = "west", labels = { region = "west" }, data = { SITE = "w" } },
    ]
    config_schemas = [{ name = "net", schema = jsonencode({
      required   = ["LEVEL", "SITE"]
      properties = { COLOUR = { type = "string" } }
    }) }]
  })
}
`

func TestAdviceListsMissingValuesWithoutAnError(t *testing.T) {
	t.Parallel()
	text := func(texts ...string) knownvalue.Check {
		checks := make([]knownvalue.Check, len(texts))
		for i := range texts {
			checks[i] = knownvalue.StringExact(texts[i])
		}
		return knownvalue.ListExact(checks)
	}
	asked := func(containers ...string) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{"schemas": text(`config schema "net"`), "containers": text(containers...)})
	}
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:      advisedFleet + "data \"flotilla_config_snapshots\" \"dev\" {\n  fleet = local.fleet\n}\n",
		ExpectError: words("/SITE is required"),
	}, {
		Config: advisedFleet + `
data "flotilla_config_snapshots" "dev" {
  fleet        = local.fleet
  cluster_type = "drone"
  advise       = true
}
`,
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("data.flotilla_config_snapshots.dev", tfjsonpath.New("advice"),
			knownvalue.MapExact(map[string]knownvalue.Check{"drone/app-test": knownvalue.ObjectExact(map[string]knownvalue.Check{
				"asked": knownvalue.MapExact(map[string]knownvalue.Check{"/LEVEL": asked("all"), "/SITE": asked(), "/COLOUR": asked()}),
				"missing": knownvalue.MapExact(map[string]knownvalue.Check{"/SITE": knownvalue.ObjectExact(map[string]knownvalue.Check{
					"reason": knownvalue.StringExact(`config schema "net": it is required, and no container that matches has it; ` +
						`config container "west" has it, but asks for region=west`),
				})}),
				"unasked": text("/EXTRA"),
			})}))},
	}}})
}

// Advice replaces only the errors of missing values.
func TestAdviceKeepsErrorsOfInvalidValues(t *testing.T) {
	t.Parallel()
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: `
data "flotilla_config_snapshots" "dev" {
  advise = true
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "drone" }]
    workloads = [{
      name               = "app"
      workspace          = "team"
      deployment_targets = { test = { environment = "dev", manifests = { repo = "https://git.example.com/app" } } }
    }]
    target_policies   = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { LEVEL = 1 } }]
    config_schemas    = [{ name = "net", schema = jsonencode({ properties = { LEVEL = { type = "string" } } }) }]
  })
}
`,
		ExpectError: words("/LEVEL must be a string"),
	}}})
}
