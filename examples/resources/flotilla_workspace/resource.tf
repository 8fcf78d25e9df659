resource "flotilla_workspace" "kaizen" {
  name               = "kaizen-app-team"
  contributor_groups = ["kaizen-developers"]
  reader_groups      = ["auditors"]
  environments       = ["dev", "stage"]
  resource_quota     = { "requests.cpu" = "2", "requests.memory" = "4Gi" }
  network_policy     = "isolated"
}
