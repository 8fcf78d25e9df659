resource "flotilla_environment" "dev" {
  name = "dev"
  gitops_repo = {
    url    = "https://git.example.com/platform/gitops.git"
    branch = "dev"
    path   = "clusters"
  }
  labels = { stage = "early" }
}
