# One cluster with Flux runs podinfo: the first steps with a real cluster.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

variable "repository" {
  description = "The URL of the GitOps repository. The cluster must reach it, too."
  type        = string
}

variable "token" {
  description = "A token that may write to the repository."
  type        = string
  ephemeral   = true
}

variable "message" {
  type    = string
  default = "Hello from Flotilla"
}

locals {
  gitops_repo = { url = var.repository, branch = "dev" }

  fleet = provider::flotilla::fleet({
    environment   = "dev"
    cluster_types = [{ name = "store", reconciler = "flux" }]
    clusters      = [{ name = "store-1", cluster_type = "store" }]
    workspaces    = [{ name = "demo" }]
    workloads = [{
      name      = "podinfo"
      workspace = "demo"
      deployment_targets = {
        web = {
          environment = "dev"
          namespace   = "podinfo"
          manifests   = { repo = "https://github.com/stefanprodan/podinfo", tag = "6.7.1", path = "./kustomize" }
        }
      }
    }]
    target_policies = [
      { name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} },
    ]
    config_containers = [
      { name = "defaults", data = { MESSAGE = var.message } },
    ]
  })
}

provider "flotilla" {
  git      = { token = var.token }
  clusters = { store-1 = { kubeconfig = file("store-1.kubeconfig") } }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

resource "flotilla_agent" "store" {
  cluster      = "store-1"
  cluster_type = "store"
  gitops_repo  = local.gitops_repo
  install      = file("flux.yaml")

  credentials_wo         = { token = var.token }
  credentials_wo_version = 1

  depends_on = [flotilla_assignment.dev]
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

output "clusters" {
  value = { for name, cluster in data.flotilla_compliance.dev.clusters : name => cluster.verdict }
}
