provider "flotilla" {
  clusters = {
    edge-1 = { kubeconfig = file("edge-1.kubeconfig") }
    hub    = { kubeconfig = file("hub.kubeconfig") }
  }
}

# Asks edge-1, and finds the clusters that others have registered with the hub.
data "flotilla_cluster_facts" "all" {
  sources = {
    clusters = { names = ["edge-1"], deadline = "20s" }
    hub      = "hub"
  }
  requested           = true
  ready_nodes_percent = 90
  timeouts            = { read = "2m" }
}

output "clusters" {
  value = {
    for name, cluster in data.flotilla_cluster_facts.all.clusters : name => {
      ready   = cluster.verdict == "ready" ? "yes" : cluster.message
      version = try(cluster.facts.kubernetes_version, null)
      nodes   = try(cluster.facts.nodes, null)
      region  = try(cluster.facts.region, null)
      # Cores that are still free.
      free = try(cluster.facts.allocatable.cpu - cluster.facts.requested.cpu, null)
    }
  }
}
