# The second region gets what has proven itself in the first one.

terraform {
  required_version = ">= 1.11"
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
  backend "pg" {
    schema_name = "america"
  }
}

module "base" {
  source = "../base"
}

data "terraform_remote_state" "europe" {
  backend = "pg"
  config  = { schema_name = "europe" }
}

resource "flotilla_promotion" "america" {
  candidate = try(data.terraform_remote_state.europe.outputs.proven, null) # an output that is null is not there
}

locals {
  promoted = flotilla_promotion.america.promoted == null ? {} : flotilla_promotion.america.promoted

  fleet = provider::flotilla::fleet({
    environment   = "prod"
    base          = module.base.fleet
    cluster_types = [{ name = "america-large", labels = { region = "america" } }]
    clusters      = [{ name = "austin", cluster_type = "america-large" }]
    workloads = [for name, version in local.promoted : {
      name      = name
      workspace = name
      deployment_targets = {
        live = { environment = "prod", manifests = { repo = "https://git.example.com/${name}", tag = version } }
      }
    }]
  })
}

data "flotilla_compliance" "america" {
  name        = "america"
  fleet       = local.fleet
  gitops_repo = module.base.gitops_repo
  feedback    = { clusters = true }
}

resource "flotilla_assignment" "america" {
  name        = "america"
  fleet       = local.fleet
  gitops_repo = module.base.gitops_repo
  candidate   = local.promoted
  evidence    = data.flotilla_compliance.america.evidence
}

output "evidence" {
  value = data.flotilla_compliance.america.evidence
}
