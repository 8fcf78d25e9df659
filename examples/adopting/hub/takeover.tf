# Only the hub: Flotilla needs no access to the clusters that it deploys to.
provider "flotilla" {
  clusters = { central = { kubeconfig = file("central.kubeconfig") } }
}

locals {
  # The Secret that registers each other cluster at the hub, by the name of the cluster.
  secrets = {
    for secret in jsondecode(local.registered).items : base64decode(secret.data.name) => secret.metadata.name
    if base64decode(secret.data.server) != "https://kubernetes.default.svc"
  }
}

# Argo CD applies the folders of its own cluster: central/ and clusters/central/.
resource "flotilla_agent" "central" {
  cluster      = "central"
  cluster_type = "central"
  reconciler   = "argocd"
  name         = "central"
  gitops_repo  = local.gitops_repo
  wait         = true
  depends_on   = [flotilla_assignment.prod]
}

# It also applies the Applications of each other cluster: those in store-1/ and clusters/store-1/.
resource "flotilla_agent" "store" {
  for_each     = local.secrets
  cluster      = each.key
  cluster_type = each.key
  reconciler   = "argocd-hub"
  hub          = "central"
  environment  = "prod"
  registration = { secret = each.value }
  gitops_repo  = local.gitops_repo
  wait         = true
  depends_on   = [flotilla_assignment.prod]
}
