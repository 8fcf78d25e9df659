package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// secretsFleet has references to secrets on two cluster types. Tests replace CONTAINERS and SCHEMAS.
const secretsFleet = `
locals {
  fleet = provider::flotilla::fleet({
    environment = "dev"
    workspaces  = [{ name = "team" }]
    cluster_types = [
      { name = "drone", labels = { region = "west" }, secret_service = "external-secrets", secret_stores = { vault = {} } },
      { name = "large", secret_service = "external-secrets", secret_stores = { vault = {} } },
    ]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        test = { environment = "dev", manifests = { repo = "https://git.example.com/app" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [
      { name = "all", data = { LEVEL = "info" }, secrets = { DB_PASSWORD = { store = "vault", key = "dev/db", property = "password", version = "3" } } },
      { name = "west", labels = { region = "west" }, secrets = { DB_PASSWORD = { store = "vault", key = "west/db" } } },
      CONTAINERS
    ]
    config_schemas = [SCHEMAS]
  })
}

data "flotilla_config_snapshots" "dev" {
  fleet = local.fleet
}

data "flotilla_config_snapshots" "west" {
  fleet = local.fleet
  key   = "/API_TOKEN"
}
`

func TestConfigSnapshotsShowReferencesToSecrets(t *testing.T) {
	t.Parallel()
	config := func(containers, schemas string) string {
		return strings.NewReplacer("CONTAINERS", containers, "SCHEMAS", schemas).Replace(secretsFleet)
	}
	text := knownvalue.StringExact
	token := `{ name = "token", labels = { region = "west" }, priority = 1, secrets = { API_TOKEN = { store = "vault", key = "token" } } },`
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: config(token, `{ name = "s", schema = jsonencode({
			required = ["DB_PASSWORD"], properties = { DB_PASSWORD = { type = "string", format = "secret", minLength = 12 } } }) }`),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(
				"data.flotilla_config_snapshots.dev",
				tfjsonpath.New("snapshots"),
				knownvalue.MapExact(map[string]knownvalue.Check{
					"large/app-test": knownvalue.ObjectPartial(map[string]knownvalue.Check{
						"json": text(`{"LEVEL":"info"}`),
						"secrets": knownvalue.MapExact(map[string]knownvalue.Check{"DB_PASSWORD": knownvalue.ObjectExact(map[string]knownvalue.Check{
							"store": text("vault"), "key": text("dev/db"), "property": text("password"), "version": text("3"),
						})}),
					}),
					"drone/app-test": knownvalue.ObjectPartial(map[string]knownvalue.Check{
						"secrets": knownvalue.MapPartial(map[string]knownvalue.Check{"DB_PASSWORD": knownvalue.ObjectExact(map[string]knownvalue.Check{
							"store": text("vault"), "key": text("west/db"), "property": knownvalue.Null(), "version": knownvalue.Null(),
						})}),
						"provenance": knownvalue.MapPartial(map[string]knownvalue.Check{"/DB_PASSWORD": knownvalue.ObjectExact(map[string]knownvalue.Check{
							"container": text("west"), "overridden": knownvalue.ListExact([]knownvalue.Check{text("all")}),
						})}),
					}),
				}),
			),
			statecheck.ExpectKnownValue(
				"data.flotilla_config_snapshots.west",
				tfjsonpath.New("snapshots"),
				knownvalue.MapExact(map[string]knownvalue.Check{
					"drone/app-test": knownvalue.NotNull(),
				}),
			),
		},
	}, {
		Config: config(
			`{ name = "plain", labels = { region = "west" }, priority = 1, data = { DB_PASSWORD = null, OTHER = "x" } },`,
			`{ name = "s", schema = jsonencode({ required = ["DB_PASSWORD"] }) }`,
		),
		ExpectError: words(`/DB_PASSWORD is required, but config container "plain" removes it`),
	}, {
		Config: config(`{ name = "plain", labels = { region = "west" }, priority = 1, data = { DB_PASSWORD = "" } },`, ""),
		ExpectError: words(
			`config container "west": /DB_PASSWORD is a reference to a secret (config_containers["west"].secrets["DB_PASSWORD"]), and ` +
				`config container "plain" gives a value in its data: a key is either a value or a secret`,
		),
	}, {
		Config: config("", `{ name = "s", schema = jsonencode({ properties = { LEVEL = { format = "secret" } } }) }`),
		ExpectError: words(
			`config container "all": /LEVEL must be a reference to a secret: give it in secrets of a config container, not in data`,
		),
	}, {
		Config:      config("", `{ name = "s", schema = jsonencode({ properties = { DB_PASSWORD = { type = "object" } } }) }`),
		ExpectError: words(`/DB_PASSWORD must be an object, not a reference to a secret`),
	}, {
		Config: config(
			`{ name = "west-2", labels = { region = "west" }, secrets = { DB_PASSWORD = { store = "vault", key = "other" } } },`,
			"",
		),
		ExpectError: words(`/DB_PASSWORD is ambiguous: the containers "west" and "west-2"`),
	}}})
}
