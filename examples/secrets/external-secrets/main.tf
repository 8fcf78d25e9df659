# References to secrets of two stores. External Secrets Operator brings them onto the clusters, and the values are nowhere else:
# neither in the configuration, nor in the state, nor in Git.

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

    # Stores have a name for the fleet, and what each cluster type calls them.
    cluster_types = [
      { name = "edge", secret_service = "external-secrets", secret_stores = { vault = {}, cloud = { name = "key-vault-eu" } } },
      { name = "store", secret_service = "external-secrets", secret_stores = { vault = { name = "vault-of-store" }, cloud = { name = "key-vault-us" } } },
    ]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            manifests   = { repo = "https://git.example.com/shop/till" }
            # The Secret "platform-secrets" is beside the ConfigMap "platform-config" in its namespace.
          }
        }
      },
      {
        name      = "cache"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            manifests   = { storage = "helm", repo = "https://charts.example.com", chart = "redis", version = "19.6.4" }
            config_as   = ["values:auth", "secret:redis"] # among the chart's values, and in a Secret of this name
          }
        }
      },
    ]

    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]

    config_containers = [
      {
        name = "all"
        data = { REGION = "east" }
        secrets = {
          DB_PASSWORD = { store = "vault", key = "prod/db", property = "password", version = "3" }
          API_TOKEN   = { store = "cloud", key = "api-token" } # whichever version is the newest
        }
      },
    ]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
