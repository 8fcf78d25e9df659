variable "gitops_token" {
  default = "a-token"
}

variable "status_token" {
  default = "another-token"
}

resource "google_container_cluster" "store" {
  name = "berlin"
}

provider "flotilla" {
  clusters = {
    berlin = {
      host                   = "https://${google_container_cluster.store.endpoint}"
      cluster_ca_certificate = base64decode(google_container_cluster.store.master_auth[0].cluster_ca_certificate)
      token                  = "a-token"
    }
  }
}

resource "flotilla_agent" "store" {
  cluster      = "berlin"
  cluster_type = "store"
  gitops_repo  = local.gitops_repo
}
