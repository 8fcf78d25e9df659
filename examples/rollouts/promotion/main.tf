locals {
  # The newest versions: dev gets them at once.
  newest = { payments = "1.8.0", reports = "2.1.0" }

  environments = {
    dev  = local.newest
    prod = coalesce(flotilla_promotion.prod.promoted, { payments = "1.7.2", reports = "2.0.5" })
  }

  fleets = {
    for environment, versions in local.environments : environment => provider::flotilla::fleet({
      environment   = environment
      workspaces    = [{ name = "team" }]
      cluster_types = [{ name = "${environment}-large" }]
      workloads = [for name, version in versions : {
        name      = name
        workspace = "team"
        deployment_targets = {
          live = {
            environment = environment
            manifests   = { repo = "https://git.example.com/${name}", tag = version }
          }
        }
      }]
      target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]
    })
  }
}

# Prod gets what is rolled out on dev.
resource "flotilla_promotion" "prod" {
  candidate = local.newest
  open      = flotilla_assignment.dev.rolled_out
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleets.dev
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleets.prod
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
