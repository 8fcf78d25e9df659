# Argo CD: one Application for each assignment, in the project of its workspace.

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

    workspaces = [
      # Flotilla writes the AppProject "shop", with the sources and namespaces of the team's own.
      { name = "shop", argocd_project = { name = "shop", render = true } },
      # This project exists.
      { name = "platform", argocd_project = "platform" },
      { name = "guests" },
    ]

    cluster_types = [{
      name       = "store"
      reconciler = "argocd"
      parameters = {
        application = {
          syncPolicy = {
            syncOptions = ["ServerSideApply=true"]
            retry       = { limit = 5, backoff = { duration = "30s", factor = 2, maxDuration = "10m" } }
          }
          revisionHistoryLimit = 3
        }
      }
    }]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        requires  = ["monitoring"]
        deployment_targets = {
          live = {
            environment = "prod"
            manifests = {
              repo = "https://git.example.com/shop/till"
              tag  = "v1.4.0"
              path = "deploy"
              parameters = {
                application = {
                  syncPolicy = { automated = { selfHeal = false } } # prune stays as it is
                  ignoreDifferences = [
                    { group = "apps", kind = "Deployment", jsonPointers = ["/spec/replicas"] },
                  ]
                }
              }
            }
          }
        }
      },
      {
        name      = "monitoring"
        workspace = "platform"
        deployment_targets = {
          live = {
            environment = "prod"
            manifests = {
              storage = "helm"
              repo    = "https://charts.example.com"
              chart   = "prometheus"
              version = "25.24.1"
              parameters = {
                values      = { server = { retention = "7d" } }
                application = { source = { helm = { skipCrds = true } } }
              }
            }
          }
        }
      },
      {
        name      = "banner"
        workspace = "guests"
        deployment_targets = {
          live = {
            environment = "prod"
            # A workspace without a project may name one here; without that it is "default".
            manifests = { repo = "https://git.example.com/guests/banner", parameters = { project = "guests" } }
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
