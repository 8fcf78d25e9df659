locals {
  versions = { stage = "v2", prod = "v1" }
  fleets = { for environment, version in local.versions : environment => provider::flotilla::fleet({
    environment   = environment
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "drone" }, { name = "large" }]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        main = { environment = environment, manifests = { repo = "https://git.example.com/team/app", tag = version } }
      }
    }]
    target_policies   = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { DATABASE_URL = "postgres://${environment}.example.com/app" } }]
  }) }

  stage = { gitops_repo = { url = "gitops.git", branch = "stage" }, name = "stage" }
  prod  = { gitops_repo = { url = "gitops.git", branch = "prod" }, name = "prod" }
}

resource "flotilla_assignment" "stage" {
  name        = local.stage.name
  fleet       = local.fleets.stage
  gitops_repo = local.stage.gitops_repo
}

resource "flotilla_assignment" "prod" {
  name        = local.prod.name
  fleet       = local.fleets.prod
  gitops_repo = local.prod.gitops_repo
}

# Both sides as they are on their branches. It refers to no resource, so that it is read at plan.
data "flotilla_comparison" "stage_and_prod" {
  left  = local.stage
  right = local.prod
}

# Prod last Tuesday and now, by the newest commit that is not later.
data "flotilla_history" "prod" {
  gitops_repo = local.prod.gitops_repo
  name        = local.prod.name
}

locals {
  until_tuesday = [for commit in data.flotilla_history.prod.commits : commit.commit if timecmp(commit.time, "2026-01-06T00:00:00Z") <= 0]
}

data "flotilla_comparison" "since_tuesday" {
  count = length(local.until_tuesday) > 0 ? 1 : 0
  left  = merge(local.prod, { commit = local.until_tuesday[0] })
  right = local.prod
}

# terraform output -raw comparison, as a comment on a pull request
output "comparison" {
  value = data.flotilla_comparison.stage_and_prod.markdown
}

# The page of prod shows what comes next.
data "flotilla_overview" "prod" {
  name        = local.prod.name
  fleet       = local.fleets.prod
  gitops_repo = local.prod.gitops_repo
  comparisons = { "stage and prod" = data.flotilla_comparison.stage_and_prod.json }
}

output "page" {
  value     = data.flotilla_overview.prod.html
  sensitive = true
}
