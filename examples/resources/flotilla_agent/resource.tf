variable "gitops_token" {
  type      = string
  default   = "not-a-token"
  sensitive = true
}

# The clusters, as other resources made them. An entry that is not known yet is no error.
provider "flotilla" {
  clusters = {
    edge-1 = { kubeconfig = file("edge-1.kubeconfig") }
  }
}

resource "flotilla_environment" "dev" {
  name        = "dev"
  gitops_repo = { url = "https://git.example.com/platform/gitops", branch = "dev" }
}

# From now on edge-1 follows the folders edge/ and clusters/edge-1/.
resource "flotilla_agent" "edge_1" {
  cluster      = "edge-1"
  cluster_type = "edge"
  gitops_repo  = flotilla_environment.dev.gitops_repo
  reconciler   = "flux"

  # The agent itself, if nobody else brings it: the output of `flux install --export`.
  # install = file("flux.yaml")

  # Write-only: in no state and no plan.
  credentials_wo         = { token = var.gitops_token }
  credentials_wo_version = 1

  # What runs on the cluster goes on when this resource is destroyed.
  on_destroy = "keep"
}

# What is there, and what has become of it.
output "objects" {
  value = flotilla_agent.edge_1.objects
}
