resource "azurerm_arc_kubernetes_cluster" "factory" {
  for_each = local.flux_configurations
  name     = each.key
}

# The example onboarding/azure-arc makes these from agent_manifests.
locals {
  flux_configurations = { berlin = { scope = "cluster", namespace = "flux-system" } }
}
