# What all regions have on the branch, and what their clusters report: it reads the outputs of their states.

terraform {
  required_version = ">= 1.11"
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
  backend "pg" {
    schema_name = "overview"
  }
}

module "base" {
  source = "../base"
}

data "terraform_remote_state" "region" {
  for_each = toset(["america", "europe"])

  backend = "pg"
  config  = { schema_name = each.key }
}

locals {
  evidences = [for state in data.terraform_remote_state.region : try(state.outputs.evidence, null)]
}

# Without name and fleet it is a page of all owners.
data "flotilla_overview" "all" {
  gitops_repo = module.base.gitops_repo
  evidences   = local.evidences
}

data "flotilla_inventory" "all" {
  gitops_repo = module.base.gitops_repo
  evidences   = local.evidences
}

output "page" {
  description = "One file of HTML: terraform output -raw page > page.html"
  value       = data.flotilla_overview.all.html
}

output "not_ready" {
  description = "What is not ready, by region."
  value = {
    for a in data.flotilla_inventory.all.assignments : a.owner => "${a.host}/${a.deployment_target} is ${coalesce(a.verdict, "not asked")}"...
    if a.verdict != "ready"
  }
}

output "health" {
  value = data.flotilla_overview.all.health_score
}
