locals {
  # The newest versions: dev gets them at once.
  newest = { payments = "1.8.0", reports = "2.1.0" }

  # Prod has what was let through last, and until then these.
  proven = coalesce(flotilla_promotion.prod.promoted, { payments = "1.7.2", reports = "2.0.5" })

  policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]

  dev = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "dev-large" }]
    workloads = [for name, version in local.newest : {
      name      = name
      workspace = "team"
      deployment_targets = {
        live = { environment = "dev", manifests = { repo = "https://git.example.com/${name}", tag = version } }
      }
    }]
    target_policies = local.policies
  })

  prod = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "prod-large" }]
    workloads = [for name, version in local.proven : {
      name      = name
      workspace = "team"
      deployment_targets = {
        live = { environment = "prod", manifests = { repo = "https://git.example.com/${name}", tag = version } }
      }
    }]
    target_policies = local.policies
  })
}

# Prod gets what dev has, and what has proven itself there: never what the same apply writes to dev.
resource "flotilla_promotion" "prod" {
  candidate = flotilla_assignment.dev.proven
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.dev
  candidate   = local.newest # what this fleet is made of
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.prod
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
