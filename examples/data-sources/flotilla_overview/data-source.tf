locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "drone", labels = { region = "east" } }]
    clusters      = [{ name = "drone-1", cluster_type = "drone" }, { name = "drone-2", cluster_type = "drone", labels = { region = "west" } }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = { environment = "dev", manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
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

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

# The page after the apply: progress is an attribute of the assignment, so that the page is read once that is written.
data "flotilla_overview" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = data.flotilla_compliance.dev.evidence
  progress    = flotilla_assignment.dev.progress
}

# terraform output -raw page > page.html
output "page" {
  value     = data.flotilla_overview.dev.html
  sensitive = true # not for secrecy: several MiB are nothing to print
}
