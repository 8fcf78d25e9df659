# Two teams on the same clusters: rights, limits, a network of their own, and a namespace that is shared.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

resource "flotilla_workspace" "shop" {
  name               = "shop"
  contributor_groups = ["shop-developers"]
  reader_groups      = ["auditors"]
  resource_quota     = { "requests.cpu" = "4", "limits.memory" = "16Gi", pods = "50" }
  limit_range = [
    { default = { memory = "256Mi" }, default_request = { cpu = "100m", memory = "128Mi" }, max = { memory = "4Gi" } },
    { type = "PersistentVolumeClaim", max = { storage = "50Gi" } },
  ]
  network_policy  = "isolated" # other namespaces of the workspace may connect, nobody else
  service_account = "shop"     # in flux-system: Flux does for the team what this account may do

  # What the team's workloads may use. All else that reaches Secrets, accounts, clusters or namespaces is an error at plan.
  sources = ["https://git.example.com/shop"]
  secrets = ["shop-git"]
}

resource "flotilla_workspace" "platform" {
  name = "platform"
}

locals {
  chart = { storage = "helm", repo = "https://charts.example.com" }

  fleet = provider::flotilla::fleet({
    environment   = "prod"
    workspaces    = [flotilla_workspace.shop, flotilla_workspace.platform]
    cluster_types = [{ name = "edge" }]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            manifests   = { repo = "https://git.example.com/shop/till", parameters = { secret_ref = "shop-git" } }
          }
        }
      },
      {
        name      = "prometheus"
        workspace = "platform"
        deployment_targets = {
          live = {
            environment = "prod"
            namespace   = "monitoring"
            manifests   = merge(local.chart, { chart = "prometheus", version = "25.24.1" })
            config_as   = ["values"]
          }
        }
      },
      {
        name      = "grafana"
        workspace = "platform"
        requires  = ["prometheus"] # both are charts, so Flux waits
        deployment_targets = {
          live = {
            environment = "prod"
            namespace   = "monitoring" # shared: one of the two writes it
            manifests   = merge(local.chart, { chart = "grafana", version = "8.4.5" })
          }
        }
      },
    ]

    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
