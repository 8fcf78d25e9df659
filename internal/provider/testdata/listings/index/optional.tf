resource "azurerm_kubernetes_cluster" "aks" {
  name = "aks"
}

module "eks" {
  source = "./eks"
}

provider "flotilla" {
  # listing
}
