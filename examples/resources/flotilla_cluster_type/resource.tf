resource "flotilla_cluster_type" "drone" {
  name        = "drone"
  environment = "dev"
  labels      = { region = "east-us", restricted = "true", edge = "true" }
  taints      = [{ key = "edge", value = "true" }]
  reconciler  = "argocd"
  parameters  = { application = { revisionHistoryLimit = 3 } }

  render             = "pointers" # the default
  kubernetes_version = "1.34"     # what charts are rendered for
  api_versions       = ["monitoring.coreos.com/v1/ServiceMonitor"]
}

# It was called "vehicle" before: its folder moves, and nothing on its clusters is removed.
resource "flotilla_cluster_type" "car" {
  name        = "car"
  formerly    = ["vehicle"]
  environment = "dev"
}
