# Azure brings Flux onto Arc-enabled clusters and makes its objects of a fluxConfiguration. What has to be in that
# is what agent_manifests writes.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  clusters = ["berlin", "lyon"]

  objects = {
    for cluster in local.clusters : cluster => [
      for text in provider::flotilla::agent_manifests({
        cluster      = cluster
        cluster_type = "factory"
        reconciler   = "flux"
        gitops_repo  = { url = "https://dev.azure.com/contoso/platform/_git/gitops", branch = "prod" }
      }) : yamldecode(text)
    ]
  }

  sources        = { for cluster, objects in local.objects : cluster => one([for object in objects : object if object.kind == "GitRepository"]) }
  kustomizations = { for cluster, objects in local.objects : cluster => [for object in objects : object if object.kind == "Kustomization"] }

  seconds = { "1m0s" = 60, "5m0s" = 300, "10m0s" = 600 }
}

# The `properties` of Microsoft.KubernetesConfiguration/fluxConfigurations.
locals {
  flux_configurations = {
    for cluster in local.clusters : cluster => {
      scope      = "cluster"
      namespace  = local.sources[cluster].metadata.namespace
      sourceKind = "GitRepository"
      gitRepository = {
        url                   = local.sources[cluster].spec.url
        repositoryRef         = { branch = local.sources[cluster].spec.ref.branch }
        syncIntervalInSeconds = local.seconds[local.sources[cluster].spec.interval]
      }
      kustomizations = {
        for object in local.kustomizations[cluster] : object.metadata.name => {
          path                   = object.spec.path
          prune                  = object.spec.prune
          wait                   = object.spec.wait
          syncIntervalInSeconds  = local.seconds[object.spec.interval]
          retryIntervalInSeconds = local.seconds[object.spec.retryInterval]
          timeoutInSeconds       = local.seconds[object.spec.timeout]
        }
      }
    }
  }
}

output "flux_configurations" {
  value = local.flux_configurations
}
