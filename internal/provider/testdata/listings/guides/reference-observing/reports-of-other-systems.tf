data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  # listing
}

locals {
  clusters = [{ name = "store-17", cluster_type = "store" }]
  seen     = [{ name = "store-17", commit = "2f6f9f8c1c0f5a2b9d8e7c6b5a4938271605f4e3", ready = true, since = "2026-11-25T18:54:08Z", message = "" }]
}
