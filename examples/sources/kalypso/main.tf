# The branch of the environment: its cluster types, configuration, policies, and what was promoted to it.
data "flotilla_repository_files" "dev" {
  url     = "https://git.example.com/platform/control-plane.git"
  ref     = "dev"
  include = ["**/*.yaml"]
}

locals {
  # Kalypso's promotion writes the commit of the main branch that the environment gets.
  base = yamldecode(data.flotilla_repository_files.dev.files["base-repo.yaml"]).spec
}

# What is promoted: registrations, templates, what all environments have in common.
data "flotilla_repository_files" "main" {
  url     = local.base.repo
  ref     = local.base.commit
  path    = local.base.path
  include = ["**/*.yaml"]
}

# Where each team's registrations may lead.
locals {
  workspaces = [
    { name = "platform-team", sources = ["https://git.example.com/platform"] },
    { name = "payments-team", sources = ["https://git.example.com/payments"] },
  ]
}

# The workloads, in the repositories of the teams.
data "flotilla_repository_files" "workloads" {
  for_each = provider::flotilla::registrations(data.flotilla_repository_files.main.files, { workspaces = local.workspaces })

  url     = each.value.url
  ref     = each.value.ref
  path    = each.value.path
  sources = each.value.sources
  include = ["**/*.yaml"]
}

locals {
  fleet = provider::flotilla::control_plane("dev", merge(
    { for name, text in data.flotilla_repository_files.main.files : "main/${name}" => text },
    { for name, text in data.flotilla_repository_files.dev.files : "dev/${name}" => text },
    { for name, read in data.flotilla_repository_files.workloads : "registrations/${name}" => { name = name, documents = read.files } },
  ))
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

output "commits" {
  value = merge(
    { dev = data.flotilla_repository_files.dev.commit, main = data.flotilla_repository_files.main.commit },
    { for name, read in data.flotilla_repository_files.workloads : name => read.commit },
  )
}
