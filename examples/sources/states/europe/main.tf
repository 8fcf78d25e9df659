# The first region gets the newest versions. Its state is a schema of a database, which PG_CONN_STR names, as in
# PG_CONN_STR=postgres://terraform@db.example.com/states.

terraform {
  required_version = ">= 1.11"
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
  backend "pg" {
    schema_name = "europe"
  }
}

module "base" {
  source = "../base"
}

locals {
  newest = { payments = "1.8.0", search = "2.1.0" }

  fleet = provider::flotilla::fleet({
    environment   = "prod"
    base          = module.base.fleet
    cluster_types = [{ name = "europe-large", labels = { region = "europe" } }]
    clusters      = [{ name = "berlin", cluster_type = "europe-large" }, { name = "paris", cluster_type = "europe-large" }]
    workloads = [for name, version in local.newest : {
      name      = name
      workspace = name
      deployment_targets = {
        live = { environment = "prod", manifests = { repo = "https://git.example.com/${name}", tag = version } }
      }
    }]
  })
}

data "flotilla_compliance" "europe" {
  name        = "europe"
  fleet       = local.fleet
  gitops_repo = module.base.gitops_repo
  feedback    = { clusters = true }
}

# With evidence, what it is made of is proven once all of it is ready on every cluster.
resource "flotilla_assignment" "europe" {
  name        = "europe"
  fleet       = local.fleet
  gitops_repo = module.base.gitops_repo
  candidate   = local.newest
  evidence    = data.flotilla_compliance.europe.evidence
}

# What other states read of this one.
output "proven" {
  value = flotilla_assignment.europe.proven
}

output "evidence" {
  value = data.flotilla_compliance.europe.evidence
}
