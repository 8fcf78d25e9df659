resource "google_container_cluster" "store" {
  for_each = toset(["berlin", "lyon"])
  name     = each.key
}

resource "flotilla_agent" "store" {
  for_each     = google_container_cluster.store
  cluster      = each.value.name
  cluster_type = "store"
  gitops_repo  = local.gitops_repo
}
