# In a file such as fleet.tfquery.hcl, beside the configuration of the provider.
list "flotilla_assignment" "all" {
  provider = flotilla

  config {
    gitops_repo = { url = "https://git.example.com/platform/gitops", branch = "dev" }
  }
}
