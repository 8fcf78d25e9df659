# Three rings of clusters: a change goes from the canary to an early region, and then to all, if few requests fail.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

variable "release" {
  type    = string
  default = "v1.4.0"
}

variable "soak" {
  description = "How long a ring must be ready before the next one gets the release."
  type        = string
  default     = "30m"
}

locals {
  gitops_repo = { url = "gitops.git", branch = "prod" }

  fleet = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "payments" }]
    cluster_types = [
      { name = "canary", labels = { ring = "0" } },
      { name = "europe", labels = { ring = "1" } },
      { name = "america", labels = { ring = "2" } },
      { name = "asia", labels = { ring = "2" } },
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
          manifests   = { repo = "https://git.example.com/payments", tag = var.release, path = "deploy" }
        }
      }
    }]
    target_policies = [{ name = "everywhere", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}

# The reports of the clusters. With {}, only metrics and time decide: replace it with { clusters = true }.
data "flotilla_compliance" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = {}
}

# The gate: the share of failed requests of each cluster, compared with the clusters that do not have the change.
data "flotilla_measurements" "prod" {
  fleet = local.fleet
  checks = [{
    name = "errors"
    of   = "cluster"
    unit = "%"
    prometheus = {
      url   = "http://127.0.0.1:9090"
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
      { name = "canary", cluster_type_selector = { match_labels = { ring = "0" } }, soak = var.soak },
      { name = "early", cluster_type_selector = { match_labels = { ring = "1" } }, soak = var.soak },
      { name = "all", cluster_type_selector = { match_labels = { ring = "2" } }, max_concurrent = 1 },
    ]
    on_failure = "roll_back"
  }
}

output "rolling_out" {
  value = flotilla_assignment.prod.rolling_out
}
