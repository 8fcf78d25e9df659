variable "kubernetes" {
  default = "1.31"
}

locals {
  clusters = {
    aks-canary = { type = "aks", ring = "canary" }
    aks-west   = { type = "aks", ring = "early" }
    eks-west   = { type = "eks", ring = "early" }
    eks-east   = { type = "eks", ring = "rest" }
    gke-east   = { type = "gke", ring = "rest" }
  }
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    cluster_types = [{ name = "aks" }, { name = "eks" }, { name = "gke" }]
    clusters      = [for name, cluster in local.clusters : { name = name, cluster_type = cluster.type, labels = { ring = cluster.ring } }]
  })
  rings = [
    { name = "canary", cluster_selector = { match_labels = { ring = "canary" } } },
    { name = "early", cluster_selector = { match_labels = { ring = "early" } }, max_concurrent = 1 },
  ] # the clusters of no ring are the last one
}

data "flotilla_cluster_facts" "prod" {}

resource "flotilla_rollout" "kubernetes" {
  name              = "kubernetes"
  fleet             = local.fleet
  wanted            = var.kubernetes
  released          = "1.30" # what the clusters have before the first apply
  proof             = "facts.kubernetes_version.startsWith(value + '.')"
  evidence          = [data.flotilla_cluster_facts.prod.evidence]
  stages            = local.rings
  on_failure        = "roll_back"
  failed_for        = "10m"
  progress_deadline = "6h"
}

# Each of these stands for the resource that makes the clusters of a cloud.

resource "terraform_data" "aks" { # azurerm_kubernetes_cluster
  for_each = { for name, version in flotilla_rollout.kubernetes.values : name => version if local.clusters[name].type == "aks" }
  input    = { name = each.key, kubernetes_version = each.value }
}

resource "terraform_data" "eks" { # aws_eks_cluster
  for_each = { for name, version in flotilla_rollout.kubernetes.values : name => version if local.clusters[name].type == "eks" }
  input    = { name = each.key, version = each.value }
}

resource "terraform_data" "gke" { # google_container_cluster
  for_each = { for name, version in flotilla_rollout.kubernetes.values : name => version if local.clusters[name].type == "gke" }
  input    = { name = each.key, min_master_version = each.value }
}

# A rule of a firewall goes the same way. No fact proves it: each ring has it for a day.
resource "flotilla_rollout" "ingress" {
  name     = "ingress"
  fleet    = local.fleet
  wanted   = { ports = ["443"], from = ["10.0.0.0/8"] }
  released = { ports = ["80", "443"], from = ["0.0.0.0/0"] }
  evidence = data.flotilla_cluster_facts.prod.evidence
  stages   = [for ring in local.rings : merge(ring, { soak = "24h" })]
}

resource "terraform_data" "firewall" { # such as azurerm_network_security_rule
  for_each = flotilla_rollout.ingress.values
  input    = each.value
}

output "versions" {
  value = flotilla_rollout.kubernetes.values
}
