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

data "flotilla_config_snapshots" "region" {
  fleet = local.fleet
  key   = "/REGION"
}

# Where does this value come from, and who lost?
output "region" {
  value = { for key, snapshot in data.flotilla_config_snapshots.region.snapshots : key => snapshot.provenance["/REGION"] }
}
