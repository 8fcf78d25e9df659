locals {
  cluster_types = [{ name = "canary" }, { name = "europe" }]
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = {}
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = data.flotilla_compliance.dev.evidence
  # listing
}
