# Clusters are created, registered with labels, given what they shall run, and made to follow it: in one apply. One
# destroy takes it all back, the agents first.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

variable "gitops_token" {
  description = "Writes the GitOps repository."
  type        = string
  ephemeral   = true
}

variable "agent_token" {
  description = "Only reads the GitOps repository. Each cluster gets it."
  type        = string
  ephemeral   = true
}

locals {
  gitops_repo = { url = "https://git.example.com/platform/gitops", branch = "prod" }

  # What is known of the clusters before they are there. Labels come from here, so that the plan can say what goes where.
  stores = {
    berlin = { region = "north", size = "large" }
    lyon   = { region = "south", size = "small" }
  }
}

# The clusters. In place of this stands a cloud's resource: an azurerm_kubernetes_cluster, an aws_eks_cluster or a
# google_container_cluster. Like theirs, its output is not known before it has been created.
resource "terraform_data" "store" {
  for_each = local.stores
  input    = file("${each.key}.kubeconfig")
}

provider "flotilla" {
  git      = { token = var.gitops_token }
  clusters = { for name, store in terraform_data.store : name => { kubeconfig = store.output } }
}

# Who runs what.
locals {
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    cluster_types = [{ name = "store", reconciler = "flux" }]
    clusters      = [for name, labels in local.stores : { name = name, cluster_type = "store", labels = labels }]
    workspaces    = [{ name = "retail" }]
    workloads = [{
      name      = "checkout"
      workspace = "retail"
      deployment_targets = {
        live = {
          environment = "prod"
          manifests   = { repo = "https://git.example.com/retail/checkout", tag = "v1.4.0", path = "./deploy" }
        }
      }
    }]
    target_policies = [{
      name                       = "large-stores"
      environment                = "prod"
      workload_selector          = {}
      deployment_target_selector = {}
      cluster_selector           = { match_labels = { size = "large" } }
    }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

# From now on each cluster follows the folders store/ and clusters/<its name>/.
resource "flotilla_agent" "store" {
  for_each     = local.stores
  cluster      = each.key
  cluster_type = "store"
  reconciler   = "flux"
  gitops_repo  = local.gitops_repo

  # install = file("flux.yaml"), which `flux install --export` writes, where nobody else brings Flux.

  credentials_wo         = { token = var.agent_token }
  credentials_wo_version = 1

  depends_on = [flotilla_assignment.prod]
}

output "objects" {
  value = { for name, agent in flotilla_agent.store : name => agent.objects }
}
