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
  registrations = provider::flotilla::registrations(data.flotilla_repository_files.main.files)
}

data "flotilla_repository_files" "workloads" {
  for_each = local.registrations

  url     = each.value.url
  ref     = each.value.ref
  path    = each.value.path
  include = ["**/*.yaml"]
}

# Registrations in what they lead to, but none that leads back.
output "further" {
  value = provider::flotilla::registrations(merge([
    for name, read in data.flotilla_repository_files.workloads : { for file, text in read.files : "${name}/${file}" => text }
  ]...), local.registrations)
}
