locals {
  clusters = [for name in ["store-17", "store-18"] : { name = name, cluster_type = "store" }]
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  # listing
}
