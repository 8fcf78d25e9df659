# Planned only: wait needs a Flux that runs. TestAgents applies it.
locals {
  gitops_repo = { url = "https://git.example.com/platform/gitops", branch = "prod" }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = provider::flotilla::fleet({ environment = "prod" })
  gitops_repo = local.gitops_repo
}
