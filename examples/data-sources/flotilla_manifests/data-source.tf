locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "kaizen-app-team" }]
    cluster_types = [{ name = "drone", labels = { region = "east-us" } }]
    workloads = [{
      name      = "hello-world-app"
      workspace = "kaizen-app-team"
      deployment_targets = {
        functional-test = { environment = "dev", manifests = { repo = "https://github.com/microsoft/kalypso-app-gitops" } }
      }
    }]
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [
      { name = "all", data = { LOG_LEVEL = "info", REGION = "somewhere" } },
      { name = "east-us", labels = { region = "east-us" }, data = { REGION = "East US" } },
    ]
  })
}

data "flotilla_manifests" "drone" {
  fleet        = local.fleet
  cluster_type = "drone"
}

output "platform_config" {
  value = data.flotilla_manifests.drone.files["drone/hello-world-app-functional-test/platform-config.yaml"]
}
