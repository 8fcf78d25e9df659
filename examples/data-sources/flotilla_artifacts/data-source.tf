locals {
  workloads = [{
    name      = "payments"
    workspace = "team"
    deployment_targets = {
      live = {
        environment = "dev"
        manifests   = { repo = "https://git.example.com/platform/apps.git", branch = "main", path = "payments" }
      }
    }
  }]
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

# What the branch is now, as a commit.
data "flotilla_artifacts" "dev" {
  workloads   = local.workloads
  environment = "dev"

  # Only these may move in this plan: the others keep the pins that are deployed.
  update           = ["payments"]
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

output "commit" {
  value = data.flotilla_artifacts.dev.pins["payments-live"].commit
}
