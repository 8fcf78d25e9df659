# Fails with: Error: Cycle: flotilla_environment.dev, azurerm_kubernetes_cluster.east, provider["registry.terraform.io/flotilla/flotilla"]
resource "flotilla_environment" "dev" {
  name        = "dev"
  gitops_repo = local.gitops_repo
}

resource "azurerm_kubernetes_cluster" "east" {
  name = "east"
}
