terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

# How many clusters each team wants.
variable "teams" {
  type    = map(number)
  default = { payments = 1 }
}

locals {
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

# Who has which clusters, whichever state the claims are in.
data "flotilla_inventory" "pool" {
  gitops_repo = local.gitops_repo
}

locals {
  claimed = flatten([for claim in data.flotilla_inventory.pool.claims : claim.clusters])

  # One more than are claimed, or are going to be in this run. A cluster that is claimed keeps its name, wherever it is
  # in the order: with the count of a resource, the last ones would be destroyed, whoever has them.
  count = max(length(local.claimed), sum(concat([0], values(var.teams)))) + 1
  free  = [for i in range(1, 1000) : "pool-${i}" if !contains(local.claimed, "pool-${i}")]
  names = concat(local.claimed, slice(local.free, 0, local.count - length(local.claimed)))
}

# In place of the module that creates a cluster in your cloud.
resource "terraform_data" "cluster" {
  for_each = toset(local.names)
  input    = each.key
}

locals {
  pool = provider::flotilla::fleet({
    environment   = "prod"
    cluster_types = [{ name = "pool" }]
    clusters = [for cluster in terraform_data.cluster : {
      name         = cluster.input
      cluster_type = "pool"
      labels       = { state = "ready" }
    }]
  })
}

resource "flotilla_cluster_claim" "team" {
  for_each = var.teams

  name        = each.key
  number      = each.value
  pool        = { match_labels = { state = "ready" } }
  fleet       = local.pool
  gitops_repo = local.gitops_repo

  # A plan knows the names of clusters that it creates: they are claimed when they are there.
  depends_on = [terraform_data.cluster]
}

output "clusters" {
  value = { for team, claim in flotilla_cluster_claim.team : team => claim.clusters }
}
