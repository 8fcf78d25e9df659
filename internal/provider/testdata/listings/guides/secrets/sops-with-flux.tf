locals {
  fleet = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "shop" }]
    workloads = [{ name = "till", workspace = "shop", deployment_targets = {
      live = { environment = "prod", namespace = "till", manifests = { repo = "https://git.example.com/shop/till" } }
    } }]
    target_policies = local.target_policies
    # listing
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}
