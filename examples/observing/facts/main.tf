terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

provider "flotilla" {
  clusters = {
    edge-1 = { kubeconfig = file("edge-1.kubeconfig") }
    edge-2 = { kubeconfig = file("edge-2.kubeconfig") }
  }
}

data "flotilla_cluster_facts" "all" {
  labels_from = {
    region            = "region"
    "example.com/gpu" = "labels.nvidia.com/gpu.present"
  }

  # What the clusters said the last time, for those that say nothing now.
  label_defaults = try(jsondecode(file("labels.json")), {})
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [{ name = "vision" }]
    cluster_types = [{ name = "edge" }]
    clusters = [for name in ["edge-1", "edge-2"] : {
      name         = name
      cluster_type = "edge"
      labels       = data.flotilla_cluster_facts.all.labels[name]
    }]
    workloads = [{
      name      = "detector"
      workspace = "vision"
      deployment_targets = {
        live = { environment = "prod", manifests = { repo = "https://git.example.com/vision/detector" } }
      }
    }]
    target_policies = [{
      name             = "europe"
      cluster_selector = { match_labels = { region = "eu-1", "example.com/gpu" = "true" } }
    }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

output "labels" {
  value = data.flotilla_cluster_facts.all.labels
}
