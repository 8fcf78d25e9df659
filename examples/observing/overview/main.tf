locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "drone", labels = { region = "east" } }, { name = "large", labels = { region = "west" } }]
    clusters = [
      { name = "drone-1", cluster_type = "drone" },
      { name = "drone-2", cluster_type = "drone" },
      { name = "large-1", cluster_type = "large" },
    ]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        main = { environment = "dev", manifests = { repo = "https://git.example.com/team/app", tag = "v1" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

# The page as it is now, and what an apply would change: it refers to no resource, so that it is read at plan.
data "flotilla_overview" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = data.flotilla_compliance.dev.evidence
  health      = { good = 80, poor = 50 }

  # Where one looks next. The values of the placeholders are escaped; a link whose value is missing is left out.
  links = {
    assignments = {
      "Argo CD" = "https://argocd.example.com/applications?search={deployment_target}"
      "Files"   = "https://git.example.com/platform/gitops/src/commit/{commit}/{folder}"
    }
    clusters = { "Logs" = "https://grafana.example.com/explore?cluster={cluster}" }
  }
}

# A check warns, and never fails a plan or an apply. There is no score as long as no cluster was asked or nothing is deployed.
check "the_fleet_is_healthy" {
  assert {
    condition     = coalesce(data.flotilla_overview.dev.health_score, 100) >= 80
    error_message = "The fleet's health is ${coalesce(data.flotilla_overview.dev.health_score, 100)} of 100."
  }
}

check "every_host_is_healthy" {
  assert {
    condition = alltrue([for host, score in data.flotilla_overview.dev.health_scores : coalesce(score, 100) >= 50])
    error_message = join("\n", [
      for host, score in data.flotilla_overview.dev.health_scores : "${host}: ${coalesce(score, 100)} of 100" if coalesce(score, 100) < 50
    ])
  }
}

check "the_rules_are_followed" {
  assert {
    condition     = data.flotilla_overview.dev.summary.rules_broken == 0
    error_message = data.flotilla_overview.dev.audit.markdown
  }
}

# What pipelines decide by: terraform output -json health | jq -e '.grade != "poor"'
output "health" {
  value = {
    score = data.flotilla_overview.dev.health_score
    grade = data.flotilla_overview.dev.health_grade
  }
}
