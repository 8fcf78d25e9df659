# Lets changes of the environment stage go to drones first, and to the others once those are ready. Copied beside
# main.tf it is all that a rollout needs: rollout_override.tf adds it to the assignments.

locals {
  # Here a file says what clusters report. feedback = { clusters = true } asks them.
  reports = try(jsondecode(file("reports.json")), [])
}

data "flotilla_compliance" "stage" {
  name        = "stage-team"
  fleet       = local.fleets["stage"]
  gitops_repo = { url = var.gitops_url, branch = "stage" }
  feedback    = { reports = local.reports }
}
