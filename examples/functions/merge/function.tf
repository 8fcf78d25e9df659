terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  common = { log = { level = "info", format = "json" }, features = ["a"], legacy = true }
  edge   = { log = { level = "debug" }, features = ["b"], legacy = null }
}

# { features = ["a", "b"], log = { format = "json", level = "debug" } }
output "merged" {
  value = provider::flotilla::merge([local.common, local.edge], { lists = "append" })
}
