# Preview: a plan sees the objects that a chart renders to, and rules apply to them.

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

    cluster_types = [{
      name               = "store"
      render             = "preview"
      kubernetes_version = "1.34" # what charts are rendered for
      api_versions       = ["monitoring.coreos.com/v1/ServiceMonitor"]
    }]

    target_policies   = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { replicas = 3 } }]

    constraints = [{
      name               = "known-registries"
      match              = { kinds = ["apps/Deployment"] }
      expression         = "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))"
      message_expression = "'its images are not from registry.example.com; it is made by its ' + made_by"
    }]
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

data "flotilla_manifests" "till" {
  fleet             = local.fleet
  deployment_target = "till-live"
}

output "images" {
  value = data.flotilla_manifests.till.images
}

output "objects" {
  value = [for object in data.flotilla_manifests.till.objects : "${object.kind} ${object.name}, by its ${object.made_by}"]
}
