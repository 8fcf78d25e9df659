locals {
  workloads = [{
    name      = "till"
    workspace = "team"
    deployment_targets = {
      live = {
        environment = "dev"
        manifests   = { storage = "helm", repo = "https://charts.example.com", chart = "till", version = "1.x" }
      }
    }
  }]
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

# The highest version that the range has now, and the digest of its archive.
data "flotilla_artifacts" "dev" {
  workloads   = local.workloads
  environment = "dev"

  # Only these may move in this plan: the others keep the pins that are deployed.
  update           = ["till"]
  keep_unreachable = true
  name             = "dev"
  gitops_repo      = local.gitops_repo
}

locals {
  fleet = provider::flotilla::fleet({
    environment     = "dev"
    workspaces      = [{ name = "team" }]
    cluster_types   = [{ name = "small" }]
    workloads       = local.workloads
    artifacts       = data.flotilla_artifacts.dev.artifacts
    target_policies = [{ name = "everything", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

output "version" {
  value = data.flotilla_artifacts.dev.pins["till-live"].version
}

# For those who promote versions.
output "newest" {
  value = data.flotilla_artifacts.dev.newest["till-live"]
}
