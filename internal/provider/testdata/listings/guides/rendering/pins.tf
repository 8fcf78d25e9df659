resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

# …
workspaces      = local.workspaces
cluster_types   = local.cluster_types
target_policies = local.target_policies
