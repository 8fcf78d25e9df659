# Who goes where, with which values, and by which rules.

locals {
  target_policies = concat(
    flatten([
      for environment in ["dev", "stage", "prod"] : [
        {
          name                  = "cloud"
          environment           = environment
          workload_selector     = { expression = "place in (cloud, everywhere)" }
          cluster_type_selector = { match_labels = { kind = "cloud" } }
        },
        {
          name                  = "edge"
          environment           = environment
          workload_selector     = { expression = "place in (edge, everywhere)" }
          cluster_type_selector = { match_labels = { kind = "edge" } }
          tolerations           = [{ key = "edge", operator = "Exists" }]
        },
      ]
    ]),
    # Shelves that count themselves are tried in a single store of prod.
    [
      {
        name                  = "no-shelves"
        environment           = "prod"
        workspace             = "logistics"
        workload_selector     = { match_labels = { place = "edge" } }
        cluster_type_selector = { match_labels = { kind = "edge" } }
        effect                = "exclude"
      },
      {
        name              = "shelves-in-lisbon"
        environment       = "prod"
        workspace         = "logistics"
        workload_selector = { match_labels = { place = "edge" } }
        cluster_selector  = { match_labels = { city = "lisbon" } }
        tolerations       = [{ key = "edge", operator = "Exists" }]
      },
    ],
  )

  # What has more labels wins over what has fewer.
  config_containers = concat(
    [
      { name = "all", data = { LOG_LEVEL = "info", TRACING = { enabled = true, ratio = 0.01 } } },
      { name = "dev", labels = { environment = "dev" }, data = { LOG_LEVEL = "debug", TRACING = { ratio = 1 } } },
      { name = "edge", labels = { kind = "edge" }, data = { BUFFER = "disk" } },
    ],
    [
      for region, values in {
        eu   = { CURRENCY = "EUR", ENDPOINT = "https://eu.api.example.com" }
        us   = { CURRENCY = "USD", ENDPOINT = "https://us.api.example.com" }
        asia = { CURRENCY = "JPY", ENDPOINT = "https://asia.api.example.com" }
      } : { name = "region-${region}", labels = { region = region }, data = values }
    ],
    [{
      name   = "ledger-eu"
      labels = { workload = "ledger", environment = "prod", region = "eu" }
      data   = { ENDPOINT = "https://ledger.eu.api.example.com" }
    }],
  )

  # The plan fails where somebody gets no endpoint.
  config_schemas = [{
    name = "endpoint"
    schema = jsonencode({
      type       = "object"
      required   = ["CURRENCY", "ENDPOINT"]
      properties = { ENDPOINT = { type = "string", pattern = "^https://" } }
    })
  }]

  # What nobody may break. The second is told in the plan, and holds nothing up.
  constraints = [
    {
      name       = "fixed-versions"
      expression = "target.manifests.tag.matches('^v[0-9]')"
      message    = "A branch is another version tomorrow: give a tag such as v1.2.3."
    },
    {
      name               = "quotas"
      expression         = "'requests.cpu' in workspace.resource_quota"
      message_expression = "'team ' + workspace.name + ' has no quota of processors'"
      mode               = "inform"
    },
  ]
}
