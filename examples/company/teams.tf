# Who has which workloads, and which version of them is the newest.

locals {
  # By team: who may change what is in its namespaces, how much it may use, and its workloads.
  teams = {
    checkout      = { cpu = "8", workloads = { till = "edge", orders = "cloud" } }
    payments      = { cpu = "8", workloads = { terminal = "edge", ledger = "cloud" } }
    catalog       = { cpu = "4", workloads = { products = "cloud" } }
    search        = { cpu = "16", workloads = { search = "cloud" } }
    loyalty       = { cpu = "2", workloads = { points = "cloud" } }
    logistics     = { cpu = "4", workloads = { routes = "cloud", shelves = "edge" } }
    observability = { cpu = "4", workloads = { collector = "everywhere" } }
    security      = { cpu = "2", workloads = { scanner = "everywhere" } }
  }

  workspaces = [
    for team, has in local.teams : {
      name               = team
      contributor_groups = ["${team}-developers"]
      reader_groups      = ["support"]
      service_account    = "team-${team}"
      argocd_project     = team
      sources            = ["https://git.example.com/${team}"]
      resource_quota     = { "requests.cpu" = has.cpu, "limits.memory" = "16Gi" }
      network_policy     = "isolated"
    }
  ]

  # The newest version of each workload. Dev gets it at once.
  newest = {
    till   = "4.2.0", orders = "2.9.1", terminal = "1.4.0", ledger = "3.0.2", products = "5.1.0", search = "7.7.3"
    points = "1.0.8", routes = "2.2.0", shelves = "0.9.4", collector = "0.140.0", scanner = "2.6.0"
  }
}
