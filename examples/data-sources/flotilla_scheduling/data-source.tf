locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "drone", labels = { edge = "true" } }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = { environment = "dev", labels = { edge = "true" }, manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
        load-test       = { environment = "dev", labels = { size = "large" }, manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
      }
    }]
    target_policies = [{
      name                       = "edge"
      deployment_target_selector = { match_labels = { edge = "true" } }
      cluster_type_selector      = { match_labels = { edge = "true" } }
    }]
  })
}

data "flotilla_scheduling" "dev" {
  fleet = local.fleet
}

output "where" {
  value = keys(data.flotilla_scheduling.dev.assignments)
}

output "namespaces_of_kaizen" {
  value = [
    for assignment in data.flotilla_scheduling.dev.assignments : assignment.namespace
    if data.flotilla_scheduling.dev.deployment_targets[assignment.deployment_target].workspace == "kaizen-app-team"
  ]
}

output "why_not" {
  value = { for target in data.flotilla_scheduling.dev.unscheduled : target.deployment_target => target.reason }
}
