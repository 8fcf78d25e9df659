# The ApplicationSets that the hub follows today.
data "flotilla_repository_files" "fleet" {
  url     = "https://git.example.com/platform/fleet.git"
  ref     = "main"
  include = ["**/*.yaml"]
}

locals {
  # The clusters that the hub knows, without their credentials.
  registered = file("${path.module}/clusters.json")

  adopted = provider::flotilla::adopt("prod", merge(data.flotilla_repository_files.fleet.files, { "clusters.json" = local.registered }), {
    repository = { url = "https://git.example.com/platform/fleet.git", branch = "main" }
    hosts      = "clusters/{cluster_type}"
  })

  # The hub is a cluster, too. The others are in the fleet because Argo CD has a Secret of each.
  fleet = provider::flotilla::fleet(merge(local.adopted.fleet, {
    clusters = concat(local.adopted.fleet.clusters, [{ name = "central", cluster_type = "central" }])
  }))
  gitops_repo = { url = "https://git.example.com/platform/gitops.git", branch = "prod" }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

# What is not in the fleet, and why.
output "listed" {
  value = [for one in local.adopted.listed : join(" ", compact(["${one.file}:", one.object, one.reason])) if !one.taken]
}
