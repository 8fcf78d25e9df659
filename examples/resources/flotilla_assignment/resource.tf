locals {
  fleet = provider::flotilla::fleet({
    environment = "dev"
    workspaces  = [{ name = "kaizen-app-team" }]
    cluster_types = [
      { name = "drone", labels = { edge = "true" } },
      { name = "large", labels = { size = "large" } },
    ]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = {
          environment = "dev"
          manifests   = { repo = "https://github.com/microsoft/kalypso-app-gitops", branch = "dev", path = "./functional-test" }
        }
      }
    }]
    target_policies   = [{ name = "edge", cluster_type_selector = { match_labels = { edge = "true" } } }]
    config_containers = [{ name = "all", data = { ENVIRONMENT = "Dev" } }]
  })
}

resource "flotilla_assignment" "dev" {
  name  = "dev"
  fleet = local.fleet

  gitops_repo = {
    url    = "gitops.git" # a local repository, created when it does not exist
    branch = "dev"
  }

  protection = {
    max_removed_percent = 20
  }

  # The full id of a commit, from flotilla_history. All folders return to their content at that commit.
  rollback_to = null

  # When the assignment goes, its folders stay for another one to take over.
  on_destroy = "keep"

  timeouts = {
    create = "45m"
    update = "45m"
  }
}
