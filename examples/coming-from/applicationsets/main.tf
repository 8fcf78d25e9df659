# The Git generator over files: a folder for each application, with a file that says more of it.
data "flotilla_repository_files" "apps" {
  url     = "https://git.example.com/platform/apps.git"
  ref     = "main"
  path    = "apps"
  include = ["*/app.yaml"]
}

locals {
  # {{.path.basename}}, and what the file says.
  apps = { for file, text in data.flotilla_repository_files.apps.files : dirname(file) => yamldecode(text) }

  # The cluster generator: the labels of Argo CD's cluster secrets. The list generator is the same.
  clusters = {
    berlin = { region = "eu", ring = "canary" }
    lyon   = { region = "eu", ring = "all" }
    boston = { region = "us", ring = "all" }
  }

  fleet = provider::flotilla::fleet({
    environment = "prod"

    cluster_types = [{ name = "store", reconciler = "argocd-hub" }]
    clusters      = [for name, labels in local.clusters : { name = name, cluster_type = "store", labels = labels }]

    workspaces = [for team in toset(values(local.apps)[*].team) : { name = team, argocd_project = team }]
    workloads = [for name, app in local.apps : {
      name      = name
      workspace = app.team
      labels    = { where = app.where }
      deployment_targets = {
        live = {
          environment = "prod"
          namespace   = app.namespace
          manifests = {
            repo   = "https://git.example.com/platform/apps"
            branch = "main"
            path   = "apps/${name}"

            # What templatePatch does.
            parameters = { application = { syncPolicy = { syncOptions = ["ServerSideApply=true"] } } }
          }
        }
      }
    }]

    # The matrix generator: the applications that are selected, on the clusters that are selected.
    target_policies = [
      { name = "everywhere", workload_selector = { match_labels = { where = "everywhere" } }, cluster_selector = {} },
      { name = "europe", workload_selector = { match_labels = { where = "europe" } }, cluster_selector = { match_labels = { region = "eu" } } },
    ]

    # The values of the cluster generator, and what the merge generator lays over them.
    config_containers = [
      { name = "all", data = { LOG_LEVEL = "info" } },
      { name = "europe", labels = { region = "eu" }, data = { REGION = "Europe" } },
      { name = "boston", labels = { cluster = "boston" }, data = { LOG_LEVEL = "debug" } },
    ]
  })
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

# Replace the empty feedback with { hub = "..." }, the cluster of the provider's `clusters` where Argo CD is.
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

  # RollingSync.
  rollout = {
    stages = [
      { name = "canary", cluster_selector = { match_labels = { ring = "canary" } }, soak = "1h" },
      { name = "all", cluster_selector = { match_labels = { ring = "all" } }, max_concurrent = 1 },
    ]
  }
}
