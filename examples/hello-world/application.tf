# The application team's part: a workspace, and a workload with its deployment targets.

resource "flotilla_workspace" "all" {
  for_each = toset(["kaizen-app-team"])

  name               = each.key
  contributor_groups = ["kaizen-developers"]
}

resource "flotilla_workload" "hello_world" {
  name      = "hello-world-app"
  workspace = "kaizen-app-team"
  labels    = { type = "application", family = "force" }

  deployment_targets = {
    functional-test = {
      environment = "dev"
      labels      = { purpose = "functional-test", edge = "true" }
      manifests   = { repo = "https://github.com/microsoft/kalypso-app-gitops", branch = "dev", path = "./functional-test" }
    }
    performance-test = {
      environment = "dev"
      labels      = { purpose = "performance-test", edge = "false" }
      manifests   = { repo = "https://github.com/microsoft/kalypso-app-gitops", branch = "dev", path = "./performance-test" }
    }
    uat-test = {
      environment = "stage"
      labels      = { purpose = "uat-test" }
      manifests   = { repo = "https://github.com/microsoft/kalypso-app-gitops", branch = "stage", path = "./uat-test" }
    }
  }
}
