resource "flotilla_target_policy" "everywhere" {
  name                       = "everywhere"
  environment                = "dev"
  deployment_target_selector = {}
  cluster_type_selector      = {}
  # listing
}

locals {
  target_policies = [flotilla_target_policy.everywhere]
}
