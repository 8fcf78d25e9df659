terraform {
  required_providers {
    flotilla = { source = "flotilla/flotilla" }
  }
}
provider "flotilla" {}
locals {
  fleet = provider::flotilla::fleet({
    environment       = "dev"
    workspaces        = [{ name = "team" }]
    cluster_types     = [for name in ["drone", "large", "spare"] : { name = name, labels = { size = name } }]
    workloads         = [{ name = "app", workspace = "team", deployment_targets = {
      core = { environment = "dev", labels = { tier = "core" }, manifests = { repo = "https://git.example.com/app", branch = "main", path = "core" } }
      edge = { environment = "dev", labels = { tier = "edge" }, manifests = { repo = "https://git.example.com/app", branch = "main", path = "edge" } }
    } }]
    target_policies = [
      { name = "core", deployment_target_selector = { match_labels = { tier = "core" } }, cluster_type_selector = { match_expressions = [{ key = "size", operator = "In", values = ["drone", "large"] }] } },
      { name = "edge", deployment_target_selector = { match_labels = { tier = "edge" } }, cluster_type_selector = { match_labels = { size = "drone" } } },
    ]
    config_containers = [{ name = "all", data = { LOG_LEVEL = "info" } }]
  })
}
resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "dev", path = "clusters" }
}
