locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "drone" }, { name = "large" }]
    clusters      = [{ name = "drone-7", cluster_type = "drone", labels = { site = "harbour" } }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = { environment = "dev", manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
        harbour         = { environment = "dev", labels = { site = "harbour" }, manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
      }
    }]
    target_policies = [
      { name = "everywhere", deployment_target_selector = { expression = "!site" }, cluster_type_selector = {} },
      { name = "harbour", deployment_target_selector = { expression = "site" }, cluster_selector = { match_labels = { site = "harbour" } } },
    ]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

# Where does this workload run, whoever has put it there?
data "flotilla_inventory" "hello_world" {
  gitops_repo = { url = "gitops.git", branch = "dev" }
  workload    = "hello-world-app"

  depends_on = [flotilla_assignment.dev]
}

output "where_hello_world_runs" {
  value = { for a in data.flotilla_inventory.hello_world.assignments : "${a.host}/${a.deployment_target}" => {
    since         = a.changed
    commit        = a.commit
    configuration = a.config_version
  } }
}

# What runs on this cluster, by its own folder and by that of its type?
data "flotilla_inventory" "drone_7" {
  gitops_repo = { url = "gitops.git", branch = "dev" }
  cluster     = "drone-7"

  depends_on = [flotilla_assignment.dev]
}

output "what_runs_on_drone_7" {
  value = [for a in data.flotilla_inventory.drone_7.assignments : "${a.workload} of ${a.workspace}, by ${a.owner}"]
}

check "hello_world_is_on_drone_7" {
  assert {
    condition     = contains([for a in data.flotilla_inventory.drone_7.assignments : a.workload], "hello-world-app")
    error_message = "Nothing of hello-world-app is on drone-7."
  }
}
