# Applied after its context: the inventory reads what is on the branch.
resource "flotilla_assignment" "prod" {
  name        = "prod"
  gitops_repo = { url = "https://git.example.com/platform/gitops", branch = "prod" }
  fleet = provider::flotilla::fleet({
    environment     = "prod"
    workspaces      = local.workspaces
    cluster_types   = local.cluster_types
    workloads       = local.workloads
    target_policies = local.target_policies
  })
}
