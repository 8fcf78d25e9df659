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

# What the clusters say. Replace the empty feedback with a source of reports: while it is empty, only measurements and time count.
data "flotilla_compliance" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = {}
}

# The share of requests that failed in the last ten minutes, of each cluster. A cluster without failures has no series of
# them, so 0 takes their place.
data "flotilla_measurements" "prod" {
  fleet = local.fleet
  checks = [{
    name = "errors"
    of   = "cluster"
    unit = "%"
    prometheus = {
      url   = "http://prometheus.example.com"
      query = <<-EOT
        100 * (
            sum by (cluster) (increase(http_requests_total{code=~"5.."}[10m]))
          or
            0 * sum by (cluster) (increase(http_requests_total[10m]))
        ) / sum by (cluster) (increase(http_requests_total[10m]))
      EOT
    }
    samples = "sum by (cluster) (increase(http_requests_total[10m]))"
    pass    = "samples >= 2000.0 && value <= (rest == null ? 1.0 : 1.5 * rest + 0.3)"
    fail    = "samples >= 2000.0 && value > (rest == null ? 5.0 : 3.0 * rest + 1.0)"
  }]
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = [data.flotilla_compliance.prod.evidence, data.flotilla_measurements.prod.evidence]

  rollout = {
    stages = [
      { name = "canary", cluster_type_selector = { match_labels = { ring = "canary" } }, soak = "30m" },
    ]
    on_failure = "roll_back"
  }
}

output "rolling_out" {
  value = flotilla_assignment.prod.rolling_out
}
