locals {
  prod = provider::flotilla::fleet({
    environment   = "prod"
    cluster_types = [{ name = "store" }]
    clusters = [
      { name = "store-berlin", cluster_type = "store", labels = { ring = "canary" } },
      { name = "store-oslo", cluster_type = "store" },
      { name = "store-porto", cluster_type = "store" },
    ]
  })
}

data "flotilla_cluster_facts" "prod" {}

# The canary gets Kubernetes 1.31 first. The others get it once that has been ready with it for a day.
resource "flotilla_rollout" "kubernetes" {
  name     = "kubernetes"
  fleet    = local.prod
  wanted   = "1.31"
  released = "1.30" # what the clusters have before the first apply
  proof    = "facts.kubernetes_version.startsWith(value)"
  evidence = data.flotilla_cluster_facts.prod.evidence
  stages = [
    { name = "canary", cluster_selector = { match_labels = { ring = "canary" } }, soak = "24h" },
    { name = "all", max_concurrent = 1 },
  ]
  holds = [{ hosts = ["store-porto"], reason = "inventory", until = "2030-01-01T00:00:00Z" }]
}

# Such as the kubernetes_version of an azurerm_kubernetes_cluster.
output "versions" {
  value = flotilla_rollout.kubernetes.values
}
