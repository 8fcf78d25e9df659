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
    config_schemas = [{ name = "all", schema = jsonencode({ required = ["REGION"] }) }]
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

# What do the schemas ask for on a cluster type, and what is missing?
data "flotilla_config_snapshots" "drone" {
  fleet        = local.fleet
  cluster_type = "drone"
  advise       = true
}

output "to_be_given" {
  value = { for key, advice in data.flotilla_config_snapshots.drone.advice : key => advice.missing }
}

output "no_schema_asks_for" {
  value = { for key, advice in data.flotilla_config_snapshots.drone.advice : key => advice.unasked }
}
