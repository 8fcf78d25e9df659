locals {
  cluster_types = [{
    name           = "store"
    secret_service = "secrets-store-csi"
    # listing
  }]
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}
