# The same configuration as a ConfigMap, as a file in one, among the values of a chart, and in place of
# variables.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  fleet = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "shop" }]

    cluster_types = [
      { name = "edge" },                                               # a ConfigMap with a key for each value
      { name = "store", reconciler = "argocd", config_type = "json" }, # a ConfigMap with the key platform-config.json
    ]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            manifests   = { repo = "https://git.example.com/shop/till" }
            # config_as = ["configmap"] is the default: the ConfigMap "platform-config" in its namespace.
          }
          edge = {
            environment = "prod"
            labels      = { only = "edge" }
            manifests   = { repo = "https://git.example.com/shop/till", path = "./edge" }
            config_as   = ["substitute"] # ${REGION} in the manifests
          }
        }
      },
      {
        name      = "cache"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            manifests = {
              storage = "helm"
              repo    = "https://charts.example.com"
              chart   = "redis"
              version = "19.6.4"
              # The configuration overrides these values.
              parameters = { values = { global = { platform = { REGION = "nowhere" } } } }
            }
            config_as = ["values:global.platform", "configmap:settings"] # both, and the ConfigMap has another name
          }
        }
      },
    ]

    target_policies = [
      { name = "everywhere", deployment_target_selector = { expression = "!only" }, cluster_type_selector = {} },
      { name = "edge", deployment_target_selector = { match_labels = { only = "edge" } }, cluster_type_selector = { match_labels = { cluster-type = "edge" } } },
    ]

    config_containers = [
      { name = "all", data = { REGION = "east", REPLICAS = 3, DEBUG = false } },
    ]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
