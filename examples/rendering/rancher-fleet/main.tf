# Rancher Fleet: a GitRepo for what is in Git, a HelmOp for charts of repositories and registries.

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
    cluster_types = [{ name = "branch", reconciler = "fleet", parameters = { git_repo = { pollingInterval = "5m" } } }]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            manifests = {
              repo   = "https://git.example.com/shop/till"
              branch = "main"
              path   = "deploy"
              parameters = {
                secret_ref = "shop-git" # the Secret in fleet-local with the credentials of the source
                git_repo   = { correctDrift = { enabled = true } }
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
            manifests = {
              storage = "oci"
              repo    = "oci://registry.example.com/charts"
              chart   = "redis"
              version = "19.6.4"
              parameters = {
                values  = { architecture = "standalone" }
                helm_op = { helm = { atomic = true, timeoutSeconds = 300 } }
              }
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
