locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "drone" }, { name = "large" }]
    clusters = [
      { name = "drone-1", cluster_type = "drone" },
      { name = "drone-2", cluster_type = "drone" },
      { name = "large-1", cluster_type = "large" },
    ]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        main = { environment = "dev", manifests = { repo = "https://git.example.com/team/app", tag = "v1" } }
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

# What the clusters say of what the last apply has written. It is read at plan, since it refers to no resource.
data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

# A check warns, and never fails a plan or an apply.
check "nothing_has_failed" {
  assert {
    condition = data.flotilla_compliance.dev.summary.failed == 0
    error_message = join("\n", [
      for key, assignment in data.flotilla_compliance.dev.assignments :
      "${key} on ${join(", ", assignment.clusters)}: ${assignment.message}" if assignment.verdict == "failed"
    ])
  }
}

check "nobody_is_left_behind" {
  assert {
    condition = alltrue([
      for cluster in data.flotilla_compliance.dev.clusters :
      cluster.verdict == "behind" ? timecmp(cluster.since, timeadd(plantimestamp(), "-24h")) > 0 : true
    ])
    error_message = "Clusters have been behind for more than a day: ${join(", ", [
      for name, cluster in data.flotilla_compliance.dev.clusters : name if cluster.verdict == "behind"
    ])}."
  }
}

output "ready" {
  value = "${data.flotilla_compliance.dev.summary.ready} of ${data.flotilla_compliance.dev.summary.clusters} clusters (${data.flotilla_compliance.dev.summary.ready_percent} %)"
}

output "why_not" {
  value = {
    for name, cluster in data.flotilla_compliance.dev.clusters : name => "${cluster.verdict}: ${cluster.message}" if cluster.verdict != "ready"
  }
}

output "drift" {
  value = [
    for difference in data.flotilla_compliance.dev.drift :
    "${coalesce(difference.assignment, "no assignment")}: ${difference.reason}${length(difference.clusters) == 0 ? "" : " (${join(", ", difference.clusters)})"}"
  ]
}
