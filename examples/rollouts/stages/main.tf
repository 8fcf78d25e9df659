locals {
  fleet = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "payments" }]
    cluster_types = [
      { name = "canary", labels = { ring = "canary" } },
      { name = "europe", labels = { ring = "region", region = "eu" } },
      { name = "america", labels = { ring = "region", region = "us" } },
      { name = "asia" },
    ]
    clusters = [
      { name = "canary-1", cluster_type = "canary" },
      { name = "europe-1", cluster_type = "europe" },
      { name = "america-1", cluster_type = "america" },
      { name = "asia-1", cluster_type = "asia" },
    ]
    workloads = [{
      name      = "payments"
      workspace = "payments"
      deployment_targets = {
        live = {
          environment = "prod"
          manifests   = { repo = "https://git.example.com/payments", tag = "v1", path = "deploy" }
        }
      }
    }]
    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

# What the clusters say. Replace the empty feedback with a source of reports: while it is empty, only time counts.
data "flotilla_compliance" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = {}
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = data.flotilla_compliance.prod.evidence

  rollout = {
    stages = [
      { name = "canary", cluster_type_selector = { match_labels = { ring = "canary" } }, soak = "1h" },
      { name = "regions", cluster_type_selector = { match_labels = { ring = "region" } }, max_concurrent = 1, soak = "30m" },
    ] # asia, which no stage names, is the last one
    on_failure        = "roll_back"
    progress_deadline = "2h"
    windows = [
      { kind = "deny", schedule = "0 0 24 12 *", duration = "72h", time_zone = "Europe/Berlin" },
    ]
  }
}

output "rolling_out" {
  value = flotilla_assignment.prod.rolling_out
}
