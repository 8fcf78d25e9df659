# What the clusters follow today.
data "flotilla_repository_files" "fleet" {
  url     = "https://git.example.com/platform/fleet.git"
  ref     = "main"
  include = ["**/*.yaml"]
}

locals {
  adopted = provider::flotilla::adopt("prod", data.flotilla_repository_files.fleet.files, {
    # The repository of objects whose own repository is not among the files.
    repository = { url = "https://git.example.com/platform/fleet.git", branch = "main" }
    hosts      = "clusters/{cluster_type}"
  })

  fleet       = provider::flotilla::fleet(local.adopted.fleet)
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
