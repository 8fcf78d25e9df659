# Validated only: the kind of the Git host is recognized by its name.
data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  # listing
}
