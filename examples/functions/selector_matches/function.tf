terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  cluster_types = {
    drone = { region = "east-us", restricted = "true" }
    large = { region = "west-us" }
  }
}

# ["large"]
output "unrestricted" {
  value = [
    for name, labels in local.cluster_types : name
    if provider::flotilla::selector_matches({ expression = "region in (east-us, west-us), !restricted" }, labels)
  ]
}
