provider "flotilla" {
  clusters = { production-1 = { kubeconfig = file("production-1.kubeconfig") } }
}

# From now on the cluster follows the folder production/ of the GitOps repository.
resource "flotilla_agent" "production_1" {
  cluster      = "production-1"
  cluster_type = "production"
  reconciler   = "flux"
  gitops_repo  = local.gitops_repo
  wait         = true
  depends_on   = [flotilla_assignment.prod]
}
