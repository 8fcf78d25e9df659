resource "flotilla_workspace" "kaizen" {
  name               = "kaizen-app-team"
  contributor_groups = ["kaizen-developers"]
  reader_groups      = ["auditors"]
  environments       = ["dev", "stage"]
  resource_quota     = { "requests.cpu" = "2", "requests.memory" = "4Gi" }
  limit_range        = [{ default_request = { cpu = "100m", memory = "128Mi" } }]
  network_policy     = "isolated"
  service_account    = "kaizen"
  argocd_project     = { name = "kaizen", render = true }
  secrets            = ["kaizen-git", "kaizen-registry"] # that its workloads may name, in the agent's namespace
  sources            = ["https://git.example.com/kaizen", "oci://registry.example.com/kaizen"]
  parameters         = ["helm_release.valuesFrom"] # fields that its workloads may set, with any value
  least_render       = "preview"                   # in place of the objects that a cluster type demands
}
