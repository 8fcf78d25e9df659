locals {
  workloads = [{ name = "till", workspace = "retail", deployment_targets = {
    live = { environment = "prod", manifests = { storage = "oci", repo = "oci://registry.example.com/till", tag = "v1" } }
  } }]
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

# …
workspaces      = local.workspaces
workloads       = local.workloads
cluster_types   = local.cluster_types
target_policies = local.target_policies
