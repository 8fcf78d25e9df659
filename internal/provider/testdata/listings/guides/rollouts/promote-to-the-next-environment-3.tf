locals {
  versions = { checkout = "1.4.0", payments = "1.8.0" }
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
  rollout     = { stages = [] }
  evidence    = data.flotilla_compliance.dev.evidence
}
