locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "drone" }]
    clusters      = [{ name = "drone-1", cluster_type = "drone" }, { name = "drone-2", cluster_type = "drone" }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = { environment = "dev", manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

# Asks the clusters that the provider's `clusters` knows; here a metrics system has spoken of one.
data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback = {
    clusters = true
    reports  = [{ cluster = "drone-2", commit = "0123456789abcdef0123456789abcdef01234567", ready = true }]
  }
}

# What runs, by deployment target: "3 of v1.2.0".
output "versions" {
  value = {
    for run in data.flotilla_compliance.dev.running : run.deployment_target => "${run.count} of ${coalesce(run.version, run.revision, "?")}"...
  }
}

output "what_runs_where" {
  value = {
    ready = "${data.flotilla_compliance.dev.summary.ready} of ${data.flotilla_compliance.dev.summary.clusters}"
    why   = { for name, cluster in data.flotilla_compliance.dev.clusters : name => cluster.message if cluster.verdict != "ready" }
  }
}
