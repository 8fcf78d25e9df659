# In a file such as fleet.tfquery.hcl, beside the configuration of the provider.
list "flotilla_cluster_claim" "all" {
  provider = flotilla

  config {
    gitops_repo = { url = "https://git.example.com/platform/gitops", branch = "dev" }
  }
}
