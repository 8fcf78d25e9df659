# Final objects: the folder has what a chart renders to, and the agent follows the folder.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  workloads = [{
    name      = "till"
    workspace = "shop"
    deployment_targets = {
      live = {
        environment = "prod"
        manifests   = { storage = "helm", repo = "https://charts.example.com", chart = "till", version = "1.x" }
        config_as   = ["values"]
      }
    }
  }]

  fleet = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "shop" }]
    workloads   = local.workloads
    artifacts   = data.flotilla_artifacts.prod.artifacts

    cluster_types = [
      { name = "store", render = "objects", kubernetes_version = "1.34" },
      {
        name       = "kiosk"
        render     = "objects"
        parameters = { gitops_repository = "flux-system" } # the GitRepository that `flux bootstrap` has made
      },
      { name = "office", render = "objects", reconciler = "argocd" },
    ]

    target_policies   = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { replicas = 3 } }]
  })
}

# A pin: rendering needs manifests that do not change by themselves.
data "flotilla_artifacts" "prod" {
  workloads   = local.workloads
  environment = "prod"
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
