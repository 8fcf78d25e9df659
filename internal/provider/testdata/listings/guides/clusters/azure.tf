resource "azurerm_resource_group" "stores" {
  name     = "stores"
  location = "westeurope"
}

variable "gitops_token" {
  default = "a-token"
}
