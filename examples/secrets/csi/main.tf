# References to secrets that Secrets Store CSI Driver mounts. Each cluster type reads the same store by a provider of its own.

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

    cluster_types = [
      {
        name           = "edge"
        secret_service = "secrets-store-csi"
        secret_stores = {
          shop = { provider = "azure", parameters = { keyvaultName = "shop-eu", tenantID = "00000000-0000-0000-0000-000000000000", clientID = "11111111-1111-1111-1111-111111111111" } }
        }
      },
      {
        name           = "store"
        secret_service = "secrets-store-csi"
        secret_stores  = { shop = { provider = "gcp", parameters = { project = "shop-us" } } }
      },
    ]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            # A pod that mounts the SecretProviderClass "platform-secrets" has the files, and as long as one does there
            # is the Secret "platform-secrets".
            manifests = { repo = "https://git.example.com/shop/till" }
          }
        }
      },
    ]

    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]

    config_containers = [
      {
        name    = "all"
        secrets = { DB_PASSWORD = { store = "shop", key = "db-password" } }
      },
    ]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
