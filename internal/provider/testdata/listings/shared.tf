# Values that listings of several guides refer to.
terraform {
  required_providers {
    flotilla = { source = "flotilla/flotilla" }
  }
}

# Terraform configures a provider only for resources.
resource "flotilla_environment" "shared" {
  name        = "shared"
  gitops_repo = local.gitops_repo
}

locals {
  gitops_repo   = { url = "https://git.example.com/platform/gitops", branch = "dev" }
  workspaces    = [{ name = "retail" }]
  cluster_types = [{ name = "store", labels = { region = "east" }, reconciler = "flux" }]
  clusters      = []
  workloads = [
    { name = "checkout", workspace = "retail", deployment_targets = {
      till = { environment = "dev", manifests = { repo = "https://git.example.com/checkout", branch = "main", path = "till" } }
      live = { environment = "prod", manifests = { repo = "https://git.example.com/checkout", branch = "main" } }
    } },
    { name = "payments", workspace = "retail", deployment_targets = {
      live = { environment = "prod", manifests = { repo = "https://git.example.com/payments", branch = "main" } }
    } },
  ]
  target_policies = [{ name = "tills", deployment_target_selector = {}, cluster_type_selector = {} }]

  fleet = provider::flotilla::fleet({
    environment       = "dev"
    workspaces        = local.workspaces
    cluster_types     = local.cluster_types
    clusters          = local.clusters
    workloads         = local.workloads
    target_policies   = local.target_policies
    config_containers = [{ name = "defaults", data = { DATABASE_URL = "mysql://db" } }]
  })
}
