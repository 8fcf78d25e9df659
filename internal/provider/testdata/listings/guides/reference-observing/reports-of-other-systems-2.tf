data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  # listing
}

locals {
  commit = "2f6f9f8c1c0f5a2b9d8e7c6b5a4938271605f4e3"

  cluster_types = [{ name = "drone" }]
  clusters      = [{ name = "drone-1", cluster_type = "drone" }]
  workspaces    = [{ name = "team" }]
  workloads = [{ name = "app", workspace = "team", deployment_targets = {
    main = { environment = "dev", manifests = { repo = "https://git.example.com/app" } }
  } }]
}
