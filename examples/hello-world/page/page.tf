# The page of the environment stage, after each apply. Copied beside main.tf and rollout.tf it is all that is needed.

data "flotilla_overview" "stage" {
  name        = "stage-team"
  fleet       = local.fleets["stage"]
  gitops_repo = { url = var.gitops_url, branch = "stage" }
  evidence    = data.flotilla_compliance.stage.evidence
  progress    = flotilla_assignment.all["stage"].progress
}

output "page" {
  description = "The page: terraform output -raw page > page.html"
  value       = data.flotilla_overview.stage.html
  sensitive   = true # not for secrecy: several hundred KiB are nothing to print
}

output "markdown" {
  description = "The same in short, for a comment on a pull request."
  value       = data.flotilla_overview.stage.markdown
}
