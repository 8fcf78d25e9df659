locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "drone" }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = { environment = "dev", manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

data "flotilla_history" "drone" {
  gitops_repo = flotilla_assignment.dev.gitops_repo
  host        = "drone"
  limit       = 20

  depends_on = [flotilla_assignment.dev]
}

output "who_changed_drone" {
  value = [for commit in data.flotilla_history.drone.commits : "${commit.time} ${commit.author_name}: ${commit.subject}"]
}
