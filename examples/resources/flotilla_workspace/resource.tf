resource "flotilla_workspace" "kaizen" {
  name               = "kaizen-app-team"
  contributor_groups = ["kaizen-developers"]
  reader_groups      = ["auditors"]
  environments       = ["dev", "stage"]
  resource_quota     = { "requests.cpu" = "2", "requests.memory" = "4Gi" }
  limit_range        = [{ default_request = { cpu = "100m", memory = "128Mi" } }]
  network_policy     = "isolated"
  service_account    = "kaizen"
  argocd_project     = { name = "kaizen", render = true }
}
