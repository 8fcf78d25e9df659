resource "flotilla_cluster_type" "drone" {
  name        = "drone"
  environment = "dev"
  labels      = { region = "east-us", restricted = "true", edge = "true" }
  taints      = [{ key = "edge", value = "true" }]
  reconciler  = "argocd"
  parameters  = { application = { revisionHistoryLimit = 3 } }
}
