terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

data "flotilla_repository_files" "main" {
  url  = "https://git.example.com/platform/control-plane.git"
  ref  = "main"
  path = "workloads"
}

locals {
  workspaces = [
    { name = "platform-team", sources = ["https://git.example.com/platform"] },
    { name = "payments-team", sources = ["https://git.example.com/payments"] },
  ]
  registrations = provider::flotilla::registrations(data.flotilla_repository_files.main.files, { workspaces = local.workspaces })
}

data "flotilla_repository_files" "workloads" {
  for_each = local.registrations

  url     = each.value.url
  ref     = each.value.ref
  path    = each.value.path
  sources = each.value.sources
  include = ["**/*.yaml"]
}

# Registrations in what they lead to, each for the same workspace, but none that leads back.
output "further" {
  value = merge([
    for name, read in data.flotilla_repository_files.workloads : provider::flotilla::registrations(read.files, {
      workspaces = [for workspace in local.workspaces : workspace if workspace.name == local.registrations[name].workspace]
      followed   = local.registrations
    })
  ]...)
}
