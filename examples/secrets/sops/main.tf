# A Secret that somebody has encrypted with SOPS is copied as it is to the clusters that its labels select. Flux decrypts it
# there, with a key that only the clusters have:
#
#   age-keygen -o age.agekey
#   kubectl create secret generic sops-age --namespace flux-system --from-file=age.agekey
#   sops encrypt --age "$(age-keygen -y age.agekey)" --encrypted-regex '^(data|stringData)$' secret.yaml > db.yaml

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
      reconciler = "flux"
      decryption = { secret = "sops-age" } # in the namespace of Flux, with the key; for flotilla_agent, too
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
