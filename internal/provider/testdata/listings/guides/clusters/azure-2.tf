resource "azurerm_kubernetes_cluster" "berlin" {
  name = "berlin"
}

provider "flotilla" {
  clusters = {
    berlin = {
      host                   = azurerm_kubernetes_cluster.berlin.kube_config[0].host
      cluster_ca_certificate = base64decode(azurerm_kubernetes_cluster.berlin.kube_config[0].cluster_ca_certificate)
      # listing
    }
  }
}

resource "flotilla_agent" "berlin" {
  cluster      = "berlin"
  cluster_type = "store"
  gitops_repo  = local.gitops_repo
}
