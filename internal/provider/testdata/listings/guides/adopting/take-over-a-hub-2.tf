# Planned only: wait needs an Argo CD that runs. TestAHubIsTakenOver applies it.
locals {
  gitops_repo = { url = "https://git.example.com/platform/gitops", branch = "prod" }
  registered  = file("clusters.json")
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = provider::flotilla::fleet({ environment = "prod" })
  gitops_repo = local.gitops_repo
}
