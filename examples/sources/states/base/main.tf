# What all regions have in common. It has no resource, so it is in no state: each region calls it.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  base = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "payments" }, { name = "search" }]

    # Every workload goes to every cluster type of its region.
    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]

    config_containers = [
      { name = "defaults", data = { LOG_LEVEL = "info" } },
      { name = "europe", labels = { region = "europe" }, data = { CURRENCY = "EUR" } },
      { name = "america", labels = { region = "america" }, data = { CURRENCY = "USD" } },
    ]
  })
}

output "fleet" {
  description = "The base of the fleet of a region."
  value       = local.base
}

output "gitops_repo" {
  description = "Where all regions write."
  value       = { url = "gitops.git", branch = "prod" }
}
