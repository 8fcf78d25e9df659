# The platform and the application of Kalypso's tutorial, in HCL: one application, two environments,
# four cluster types, and a database that the same apply creates.

terraform {
  required_version = ">= 1.11"
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

provider "flotilla" {}

variable "gitops_url" {
  description = "URL of the GitOps repository, or the path of a local one, which is created when it does not exist."
  type        = string
  default     = "gitops.git"
}

resource "flotilla_environment" "all" {
  for_each = toset(["dev", "stage"])

  name = each.key
  gitops_repo = {
    url    = var.gitops_url
    branch = each.key
  }
}

# Everything of an environment goes through one local: a data source that refers to resources
# directly would be read only at apply.
locals {
  fleets = {
    for environment in ["dev", "stage"] : environment => provider::flotilla::fleet({
      environment       = environment
      environments      = ["dev", "stage"]
      workspaces        = flotilla_workspace.all
      cluster_types     = merge(flotilla_cluster_type.dev, flotilla_cluster_type.stage)
      clusters          = local.clusters
      workloads         = [flotilla_workload.hello_world]
      target_policies   = flotilla_target_policy.all
      config_containers = flotilla_config_container.all
      config_schemas    = [flotilla_config_schema.database]
    })
  }
}

data "flotilla_scheduling" "all" {
  for_each = local.fleets

  fleet = each.value
}

resource "flotilla_assignment" "all" {
  for_each = local.fleets

  name        = each.key
  fleet       = each.value
  gitops_repo = flotilla_environment.all[each.key].gitops_repo
}

output "assignments" {
  description = "Who goes where, and which policy says so."
  value = merge([
    for environment, scheduling in data.flotilla_scheduling.all : {
      for key, assignment in scheduling.assignments : "${environment}: ${key}" => join(", ", assignment.policies)
    }
  ]...)
}

output "commits" {
  value = { for environment, assignment in flotilla_assignment.all : environment => assignment.commit }
}
