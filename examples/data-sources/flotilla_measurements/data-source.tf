locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "drone" }]
    clusters      = [{ name = "drone-1", cluster_type = "drone" }, { name = "drone-2", cluster_type = "drone" }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = { environment = "dev", manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
}

data "flotilla_measurements" "dev" {
  fleet = local.fleet
  checks = [
    {
      # A cluster with the change may have one and a half times the errors of those without it, and a tenth of a percent more.
      # A cluster without failures has no series of them, so 0 takes their place.
      name = "errors"
      of   = "cluster"
      unit = "%"
      prometheus = {
        url     = "https://mimir.example.com/prometheus"
        headers = { X-Scope-OrgID = "platform" }
        labels  = { cluster = "k8s_cluster" }
        query   = <<-EOT
          100 * (
              sum by (k8s_cluster) (increase(http_requests_total{code=~"5.."}[30m]))
            or
              0 * sum by (k8s_cluster) (increase(http_requests_total[30m]))
          ) / sum by (k8s_cluster) (increase(http_requests_total[30m]))
        EOT
      }
      samples = "sum by (k8s_cluster) (increase(http_requests_total[30m]))"
      pass    = "samples >= 1000.0 && (rest == null ? value < 1.0 : value <= rest * 1.5 + 0.1)"
      fail    = "samples >= 1000.0 && value > 5.0"
    },
    {
      # Each cluster says itself whether its ingress works.
      name = "ingress"
      of   = "cluster"
      web = {
        url     = "https://{cluster}.ingress.example.com/healthz"
        value   = "status == 200 && body.ready == true"
        timeout = "5s"
      }
      pass = "value == 1.0"
    },
  ]
}

output "errors" {
  value = data.flotilla_measurements.dev.results[0].figures
}
