locals {
  # What there is, before anybody decides what a cluster is for.
  clusters = [for name in ["pool-1", "pool-2", "pool-3"] : { name = name, labels = { state = "ready" } }]

  # The claim takes clusters from a fleet that has only the clusters. It cannot take them from the fleet below, which depends
  # on the claim: that would be a cycle.
  pool = provider::flotilla::fleet({
    environment   = "prod"
    cluster_types = [{ name = "pool" }]
    clusters      = [for cluster in local.clusters : merge(cluster, { cluster_type = "pool" })]
  })
}

resource "flotilla_cluster_claim" "payments" {
  name   = "payments"
  number = 2
  pool   = { match_labels = { state = "ready" } }
  fleet  = local.pool

  gitops_repo = {
    url    = "gitops.git"
    branch = "prod"
  }
}

locals {
  # The clusters of the claim are of the type "payments", the others stay in the pool.
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [{ name = "payments" }]
    cluster_types = [{ name = "pool" }, { name = "payments", labels = { team = "payments" } }]
    clusters = [for cluster in local.clusters : merge(cluster, {
      cluster_type = contains(flotilla_cluster_claim.payments.clusters, cluster.name) ? "payments" : "pool"
    })]
    workloads = [{
      name      = "payments"
      workspace = "payments"
      deployment_targets = {
        live = { environment = "prod", manifests = { repo = "https://git.example.com/payments" } }
      }
    }]
    target_policies = [{ name = "payments", cluster_type_selector = { match_labels = { team = "payments" } } }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

output "clusters_of_payments" {
  value = flotilla_cluster_claim.payments.clusters
}
