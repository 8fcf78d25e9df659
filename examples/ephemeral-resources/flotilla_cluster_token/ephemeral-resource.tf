locals {
  edge_1 = yamldecode(file("edge-1.kubeconfig")).clusters[0].cluster
}

provider "flotilla" {
  clusters = {
    edge-1 = { kubeconfig = file("edge-1.kubeconfig") }
  }
}

# A token for half an hour, in no plan and no state.
ephemeral "flotilla_cluster_token" "reader" {
  cluster         = "edge-1"
  namespace       = "flux-system"
  service_account = "fleet-reader"
  duration        = "30m"
}

# With this provider block, nothing on the cluster is done with more rights than the account has.
provider "flotilla" {
  alias = "reader"
  clusters = {
    edge-1 = {
      host                   = local.edge_1.server
      cluster_ca_certificate = base64decode(local.edge_1.certificate-authority-data)
      token                  = ephemeral.flotilla_cluster_token.reader.token
    }
  }
}

data "flotilla_cluster_facts" "edge_1" {
  provider = flotilla.reader
  sources  = { clusters = { names = ["edge-1"] } }
}

output "edge_1" {
  value = data.flotilla_cluster_facts.edge_1.clusters["edge-1"].message
}
