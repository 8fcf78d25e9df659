# `terraform test` runs this without any cluster: what they say is made up here.
override_resource {
  target = flotilla_assignment.dev
}

override_data {
  target = data.flotilla_compliance.dev
  values = {
    time     = "2026-01-31T00:00:00Z"
    evidence = "{}"
    summary = {
      clusters = 3, ready = 2, progressing = 0, failed = 1, behind = 0, unknown = 0, ready_percent = 66, behind_since = null
    }
    clusters = {
      drone-1 = {
        cluster_type = "drone", verdict = "ready", commit = null, commits_behind = 0, behind_since = null
        since        = "2026-01-31T00:00:00Z", message = "1 assignment is ready"
      }
      drone-2 = {
        cluster_type = "drone", verdict = "failed", commit = null, commits_behind = 0, behind_since = null
        since        = "2026-01-31T00:00:00Z", message = "no space left on device"
      }
      large-1 = {
        cluster_type = "large", verdict = "ready", commit = null, commits_behind = 0, behind_since = null
        since        = "2026-01-31T00:00:00Z", message = "1 assignment is ready"
      }
    }
    assignments = {
      "drone/app-main" = {
        verdict = "failed", since = "2026-01-31T00:00:00Z", message = "no space left on device", clusters = ["drone-2"]
      }
    }
    drift = []
  }
}

run "a_failure_is_told" {
  command = plan

  assert {
    condition     = output.why_not == { drone-2 = "failed: no space left on device" }
    error_message = "The output does not say why drone-2 is not ready."
  }

  expect_failures = [check.nothing_has_failed]
}
