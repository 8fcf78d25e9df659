variable "commit" {
  description = "The commit of this configuration, of which CI knows: GITHUB_SHA, CI_COMMIT_SHA, Build.SourceVersion."
  type        = string
  default     = "6c1d7c8a8d1c4f6f0fd0f1c64a1c7c2d6bb4a3f0"
}

locals {
  control_plane = "https://git.example.com/platform/control-plane.git"
  # What the team wants to run: its repository, and the commit that it has promoted.
  app = { url = "https://git.example.com/team/app.git", commit = "3f786850e387550fdab836ed7e6dc881de23001b" }

  fleet = provider::flotilla::fleet({
    environment   = "prod"
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
        main = { environment = "prod", manifests = { repo = local.app.url, commit = local.app.commit } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

# What the clusters say of what the last apply has written. It is read at plan, since it refers to no resource.
data "flotilla_compliance" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  source      = { url = local.control_plane, commit = var.commit }
  evidence    = data.flotilla_compliance.prod.evidence
  rollout     = { stages = [{ name = "drones", cluster_selector = { match_labels = { cluster-type = "drone" } } }, { name = "all", cluster_selector = {} }] }
}

# The commit of the control plane says whether all of it is rolled out.
resource "flotilla_commit_status" "control_plane" {
  url         = local.control_plane
  forge       = "gitea"
  commit      = var.commit
  context     = "flotilla/prod"
  state       = flotilla_assignment.prod.rolled_out ? "success" : "pending"
  description = flotilla_assignment.prod.rolled_out ? "Rolled out" : join("; ", [for target, progress in flotilla_assignment.prod.rolling_out : "${target}: ${progress.summary}"])
}

locals {
  # The team's deployment target, wherever it is not ready. A cluster of which nothing is known is in none of these.
  not_ready = [
    for key, assignment in data.flotilla_compliance.prod.assignments : assignment if endswith(key, "/app-main")
  ]
  failed = [for assignment in local.not_ready : assignment.message if assignment.verdict == "failed"]
  # Clusters report the version that they have. While another one is on its way, its target is in progress, which is sensitive only to keep plans short.
  runs = alltrue([
    !contains(keys(jsondecode(nonsensitive(flotilla_assignment.prod.progress))), "app-main"),
    length(local.not_ready) == 0,
    data.flotilla_compliance.prod.summary.unknown == 0,
  ])
}

# The team's commit says whether it runs, on every cluster that is to have it.
resource "flotilla_commit_status" "app" {
  url         = local.app.url
  forge       = "gitea"
  commit      = local.app.commit
  context     = "flotilla/prod/app-main"
  state       = length(local.failed) > 0 ? "failure" : local.runs ? "success" : "pending"
  description = length(local.failed) > 0 ? local.failed[0] : local.runs ? "It runs on all clusters" : "Not on all clusters yet"
  link        = "https://fleet.example.com/prod"
}
