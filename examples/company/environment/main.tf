# One environment: its fleet, and what is written to its branch.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

variable "name" {
  type = string
}

variable "gitops_url" {
  type = string
}

variable "platform" {
  description = "What the platform team describes, for all environments: the fleet leaves out what is of others."
  type        = any
}

variable "teams" {
  description = "By team, its workloads: where each of them runs."
  type        = any
}

variable "versions" {
  description = "The version of each workload. One without a version is not there."
  type        = map(string)
}

variable "rollout" {
  description = "How a change goes on. Without it everything goes at once."
  type        = any
  default     = null
}

locals {
  gitops_repo = { url = var.gitops_url, branch = var.name }
  versions    = var.versions == null ? {} : var.versions

  # Everything of an environment goes through one local.
  fleet = provider::flotilla::fleet(merge(var.platform, {
    environment = var.name
    workloads = flatten([
      for team, has in var.teams : [
        for name, place in has.workloads : {
          name      = name
          workspace = team
          labels    = { place = place }
          deployment_targets = {
            (var.name) = {
              environment = var.name
              manifests   = { repo = "https://git.example.com/${team}/${name}", tag = "v${local.versions[name]}", path = "deploy" }
            }
          }
        } if contains(keys(local.versions), name)
      ]
    ])
  }))
}

# Replace the empty feedback with a source of reports, such as { clusters = true }: while it is empty, only time counts.
data "flotilla_compliance" "this" {
  count = var.rollout == null ? 0 : 1

  name        = var.name
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = {}
}

resource "flotilla_assignment" "this" {
  name        = var.name
  fleet       = local.fleet
  candidate   = var.versions
  gitops_repo = local.gitops_repo
  rollout     = var.rollout
  evidence    = one(data.flotilla_compliance.this[*].evidence)

  # A wrong label must not empty a region.
  protection = { max_removed_percent = 10 }
}

output "proven" {
  description = "The last versions that are all on the branch, and proven where a rollout asks for that."
  value       = flotilla_assignment.this.proven
}

output "rolling_out" {
  description = "By deployment target, what is under way."
  value       = flotilla_assignment.this.rolling_out
}
