terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

variable "currency" {
  type    = string
  default = "EUR"
}

locals {
  fleet = provider::flotilla::fleet({
    environment = "dev"
    workspaces  = [{ name = "shop" }]

    # All clusters of a type run the same, be it one or a thousand.
    cluster_types = [
      { name = "store", labels = { edge = "true" } },
      { name = "cloud", labels = { edge = "false" }, reconciler = "argocd" },
    ]

    # A team's application, and where its manifests are.
    workloads = [{
      name      = "checkout"
      workspace = "shop"
      deployment_targets = {
        till    = { environment = "dev", labels = { tier = "till" }, manifests = { repo = "https://git.example.com/checkout", branch = "main", path = "till" } }
        backend = { environment = "dev", labels = { tier = "backend" }, manifests = { repo = "https://git.example.com/checkout", branch = "main", path = "backend" } }
      }
    }]

    # Who goes where.
    target_policies = [
      { name = "tills", deployment_target_selector = { match_labels = { tier = "till" } }, cluster_type_selector = { match_labels = { edge = "true" } } },
      { name = "backends", deployment_target_selector = { match_labels = { tier = "backend" } }, cluster_type_selector = { match_labels = { edge = "false" } } },
    ]

    # With which values. A container reaches what has all of its labels.
    config_containers = [
      { name = "everywhere", data = { LOG_LEVEL = "info" } },
      { name = "stores", labels = { edge = "true" }, data = { CURRENCY = var.currency } },
    ]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "dev" }
}
