resource "flotilla_workload" "hello_world" {
  name      = "hello-world-app"
  workspace = "kaizen-app-team"
  labels    = { type = "application" }

  deployment_targets = {
    functional-test = {
      environment = "dev"
      labels      = { purpose = "functional-test" }
      manifests = {
        repo   = "https://github.com/microsoft/kalypso-app-gitops"
        branch = "dev"
        path   = "./functional-test"
      }
    }
    uat-test = {
      environment = "stage"
      labels      = { purpose = "uat-test" }
      manifests = {
        storage = "helm"
        repo    = "https://charts.example.com"
        chart   = "hello-world"
        version = "1.2.3"
      }
      config_schema = jsonencode({ required = ["REGION"] })
    }
  }
}
