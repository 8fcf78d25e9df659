# Config Sync: a RootSync for manifests in Git, and for those in an OCI registry.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "branch", reconciler = "config-sync", parameters = { root_sync = { override = { reconcileTimeout = "10m" } } } }]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            namespace   = "till" # which the manifests name, too
            manifests = {
              repo   = "https://git.example.com/shop/till"
              branch = "main"
              path   = "deploy"
              parameters = {
                secret_ref = "shop-git" # the Secret in config-management-system, with username and token
                root_sync  = { git = { period = "30s" } }
              }
            }
          }
        }
      },
      {
        name      = "cache"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            namespace   = "cache"
            manifests = {
              storage    = "oci"
              repo       = "oci://registry.example.com/shop/cache"
              tag        = "1.4.2"
              parameters = { root_sync = { oci = { auth = "k8sserviceaccount" } } }
            }
          }
        }
      },
    ]

    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
