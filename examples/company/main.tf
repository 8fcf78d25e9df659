# A company with three environments, eight teams, and cluster types in the cloud and at the edge. Versions go from dev
# to stage to prod as they prove themselves, one environment after the other; within prod a change goes ring by ring.
#
# A module for each environment keeps them apart: what one of them waits for, the others do not. A single local with
# the fleets of all environments would be a cycle as soon as one of them depends on what is rolled out on another.

terraform {
  required_version = ">= 1.11"
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

variable "gitops_url" {
  description = "URL of the GitOps repository, which has a branch for each environment."
  type        = string
  default     = "gitops.git"
}

locals {
  platform = {
    environments      = ["dev", "stage", "prod"]
    workspaces        = local.workspaces
    cluster_types     = local.cluster_types
    clusters          = local.clusters
    target_policies   = local.target_policies
    config_containers = local.config_containers
    config_schemas    = local.config_schemas
    constraints       = local.constraints
  }
}

module "dev" {
  source = "./environment"

  name       = "dev"
  gitops_url = var.gitops_url
  platform   = local.platform
  teams      = local.teams
  versions   = local.newest
}

# Stage gets what has proven itself on dev: never what the same apply writes there. With soak = "24h" and
# now = plantimestamp() a version has to be there for a day before it goes on.
resource "flotilla_promotion" "stage" {
  candidate = module.dev.proven
}

module "stage" {
  source = "./environment"

  name       = "stage"
  gitops_url = var.gitops_url
  platform   = local.platform
  teams      = local.teams
  versions   = flotilla_promotion.stage.promoted # null until there is something
}

# Prod gets what has proven itself on stage.
resource "flotilla_promotion" "prod" {
  candidate = module.stage.proven
}

module "prod" {
  source = "./environment"

  name       = "prod"
  gitops_url = var.gitops_url
  platform   = local.platform
  teams      = local.teams
  versions   = flotilla_promotion.prod.promoted

  # Ring by ring, and nothing between Christmas and the new year.
  rollout = {
    stages = [
      { name = "canary", cluster_type_selector = { match_labels = { ring = "canary" } }, soak = "1h" },
      { name = "europe", cluster_type_selector = { match_labels = { region = "eu" } }, soak = "2h" },
    ] # hosts that no stage names are the last one
    on_failure        = "roll_back"
    progress_deadline = "6h"
    unknown           = "skip"
    windows           = [{ kind = "deny", schedule = "0 0 23 12 *", duration = "240h", time_zone = "Europe/Berlin" }]
  }
}

output "rolling_out" {
  description = "What is under way in prod, and what it waits for."
  value       = module.prod.rolling_out
}
