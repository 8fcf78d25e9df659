terraform {
  required_version = ">= 1.14"
}

provider "flotilla" {
  clusters = {
    edge-1 = { kubeconfig = file("edge-1.kubeconfig") }
  }
}

variable "log_level" {
  type    = string
  default = "info"
}

locals {
  gitops_repo = { url = "gitops.git", branch = "dev" }

  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "store" }]
    workloads = [{
      name      = "checkout"
      workspace = "shop"
      deployment_targets = {
        till = { environment = "dev", manifests = { repo = "https://git.example.com/checkout", branch = "main", path = "till" } }
      }
    }]
    target_policies   = [{ name = "all", cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { LOG_LEVEL = var.log_level } }]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo

  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [action.flotilla_reconcile.dev]
    }
  }
}

# When the commit is on the branch, the clusters are asked to look at it.
action "flotilla_reconcile" "dev" {
  config {
    clusters    = ["edge-1"]
    gitops_repo = local.gitops_repo
    reconciler  = "flux"
  }
}
