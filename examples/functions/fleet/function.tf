terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

output "fleet" {
  value = provider::flotilla::fleet({
    environment     = "dev"
    workspaces      = [{ name = "kaizen-app-team" }]
    cluster_types   = yamldecode("[{name: drone, labels: {edge: 'true'}}]")
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
}
