# The platform team's part: cluster types, target policies and configuration.

variable "database_address" {
  description = "Address of the database in us-west."
  type        = string
  default     = "mysql://west:8806/mysql2"
}

# Stands for the infrastructure of the same apply: its output is not known before it is created.
resource "terraform_data" "database" {
  input = var.database_address
}

locals {
  cluster_types = {
    drone          = { region = "east-us", restricted = "true", edge = "true" }
    command-center = { region = "east-us", restricted = "true" }
    large          = { region = "west-us", size = "large" }
    small          = { region = "west-us", size = "small" }
  }

  # None is known by name: their agents follow the folders of their types.
  clusters = []

  config = {
    east-us    = { labels = { region = "east-us" }, data = { REGION = "East US" } }
    west-us    = { labels = { region = "west-us" }, data = { REGION = "West US", DATABASE_URL = terraform_data.database.output } }
    restricted = { labels = { restricted = "true" }, data = { DATABASE_URL = "mysql://restricted-host:3306/mysqlrty123" } }

    drone          = { labels = { cluster-type = "drone" }, data = { CLUSTER_NAME = "Drone" } }
    command-center = { labels = { cluster-type = "command-center" }, data = { CLUSTER_NAME = "Command Center" } }
    large          = { labels = { cluster-type = "large" }, data = { CLUSTER_NAME = "Large" } }
    small          = { labels = { cluster-type = "small" }, data = { CLUSTER_NAME = "Small" } }

    dev   = { labels = { environment = "dev" }, data = { ENVIRONMENT = "Dev" } }
    stage = { labels = { environment = "stage" }, data = { ENVIRONMENT = "Stage" } }
    all   = { labels = {}, data = { SOME_COMMON_ENVIRONMENT_VARIABLE = false } }
  }

  policies = {
    functional-test = {
      environment   = "dev"
      targets       = { purpose = "functional-test", edge = "true" }
      cluster_types = { restricted = "true", edge = "true" }
    }
    performance-test = {
      environment   = "dev"
      targets       = { purpose = "performance-test", edge = "false" }
      cluster_types = { size = "large" }
    }
    uat-test = {
      environment   = "stage"
      targets       = { purpose = "uat-test" }
      cluster_types = {} # every cluster type
    }
  }
}

resource "flotilla_cluster_type" "dev" {
  for_each = local.cluster_types

  name        = each.key
  environment = "dev"
  labels      = each.value
  reconciler  = each.key == "small" ? "argocd" : "flux"
}

resource "flotilla_cluster_type" "stage" {
  for_each = { for name in ["drone", "large"] : "stage-${name}" => name }

  name        = each.value
  environment = "stage"
  labels      = local.cluster_types[each.value]
}

resource "flotilla_target_policy" "all" {
  for_each = local.policies

  name                       = each.key
  environment                = each.value.environment
  workspace                  = "kaizen-app-team"
  deployment_target_selector = { match_labels = each.value.targets }
  cluster_type_selector      = { match_labels = each.value.cluster_types }
}

resource "flotilla_config_container" "all" {
  for_each = local.config

  name   = each.key
  labels = each.value.labels
  data   = each.value.data
}

resource "flotilla_config_schema" "database" {
  name   = "database"
  labels = { workload = "hello-world-app" }
  schema = jsonencode({
    type       = "object"
    required   = ["DATABASE_URL", "REGION"]
    properties = { DATABASE_URL = { type = "string", pattern = "^mysql://" } }
  })
}
