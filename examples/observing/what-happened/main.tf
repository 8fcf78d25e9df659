locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "drone" }, { name = "large" }]
    clusters      = [{ name = "drone-1", cluster_type = "drone" }, { name = "large-1", cluster_type = "large" }]
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

# Who changed it, and what clusters say of it. Both are read at plan, and tell what the last apply has left.
data "flotilla_history" "app" {
  name              = "dev"
  gitops_repo       = local.gitops_repo
  deployment_target = "app-main"
  limit             = 20
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

# The newest comes first: times of this form are in order when their texts are.
output "what_happened_to_app" {
  value = join("\n", concat(["| when | what | where |", "|---|---|---|"], reverse(sort(concat(
    [for commit in data.flotilla_history.app.commits :
      "| ${commit.time} | ${commit.author_name}: ${commit.subject} | ${join(", ", [for change in commit.changes : "${change.action} on ${change.host}"])} |"
    ],
    [for key, assignment in data.flotilla_compliance.dev.assignments :
      "| ${assignment.since} | ${assignment.verdict}: ${assignment.message} | ${join(", ", assignment.clusters)} |" if endswith(key, "/app-main")
    ],
  )))))
}
