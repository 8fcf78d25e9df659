locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "drone" }, { name = "large" }]
    clusters = [
      { name = "drone-1", cluster_type = "drone" },
      { name = "drone-2", cluster_type = "drone" },
      { name = "large-1", cluster_type = "large" },
    ]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        main = { environment = "dev", manifests = { repo = "https://git.example.com/team/app", tag = "v1" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

# What the rollout goes by.
data "flotilla_compliance" "before" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = data.flotilla_compliance.before.evidence
  rollout     = { stages = [{ name = "canary", hosts = ["drone"] }] }
}

# The state after the apply, with the rollouts under way. It is a second data source, because the one that the rollout goes by cannot
# refer to the assignment.
data "flotilla_compliance" "after" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
  progress    = flotilla_assignment.dev.progress
}

# It changes in every run: sensitive keeps it out of what plans and applies print. `terraform output -raw metrics` prints it.
output "metrics" {
  value     = data.flotilla_compliance.after.metrics
  sensitive = true
}
