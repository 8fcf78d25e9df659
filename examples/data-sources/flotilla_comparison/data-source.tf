locals {
  versions = { stage = "1.8.0", prod = "1.7.2" }
  fleets = { for environment, version in local.versions : environment => provider::flotilla::fleet({
    environment   = environment
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "${environment}-large" }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        live = { environment = environment, manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops", tag = version } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  }) }
}

resource "flotilla_assignment" "stage" {
  name        = "stage"
  fleet       = local.fleets.stage
  gitops_repo = { url = "gitops.git", branch = "stage" }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleets.prod
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

data "flotilla_comparison" "stage_and_prod" {
  left  = { gitops_repo = { url = "gitops.git", branch = "stage" }, name = "stage" }
  right = { gitops_repo = { url = "gitops.git", branch = "prod" }, name = "prod" }
  pairs = { hosts = { "stage-large" = "prod-large" } } # what has two names

  depends_on = [flotilla_assignment.stage, flotilla_assignment.prod]
}

# { "hello-world-app-live" = "1.8.0 / 1.7.2" }
output "versions_that_differ" {
  value = { for target in data.flotilla_comparison.stage_and_prod.deployment_targets : target.name => join(" / ", [
    for side in [target.left, target.right] : join(", ", [for version in side.versions : version.manifests.tag])
  ]) if contains(target.differs, "version") }
}
