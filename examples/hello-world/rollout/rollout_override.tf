locals {
  clusters = [
    { name = "drone-1", cluster_type = "drone", environment = "stage" },
    { name = "large-1", cluster_type = "large", environment = "stage" },
  ]
}

resource "flotilla_assignment" "all" {
  evidence = each.key == "stage" ? data.flotilla_compliance.stage.evidence : null
  rollout  = each.key == "stage" ? { stages = [{ name = "canary", hosts = ["drone"] }] } : null
}
