terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

output "manifests" {
  value = provider::flotilla::agent_manifests({
    cluster      = "store-17"
    cluster_type = "store"
    reconciler   = "flux"
    gitops_repo = {
      url    = "https://git.example.com/platform/gitops"
      branch = "prod"
    }
    credentials_secret = "gitops" # is on the cluster already
  })
}
