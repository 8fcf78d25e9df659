# A SealedSecret is copied as it is to the clusters that its labels select. The controller of Sealed Secrets, which has the
# key, makes a Secret of it there, whatever agent the clusters have:
#
#   kubeseal --format yaml < secret.yaml > db.yaml

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  fleet = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "shop" }]

    cluster_types = [{
      name       = "edge"
      labels     = { region = "east" }
      reconciler = "argocd"
    }]

    workloads = [{
      name      = "till"
      workspace = "shop"
      deployment_targets = {
        live = {
          environment = "prod"
          namespace   = "till" # that of the encrypted file
          manifests   = { repo = "https://git.example.com/shop/till" }
        }
      }
    }]

    target_policies = [
      { name = "everywhere", cluster_type_selector = {} },
    ]

    config_containers = [
      { name = "east", labels = { region = "east", workload = "till" }, data = { DB_HOST = "db.east.example.com" }, encrypted = [file("${path.module}/db.yaml")] },
    ]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
