resource "aws_eks_cluster" "central" {
  name = "central"
}

resource "aws_eks_cluster" "store" {
  for_each = toset(["berlin", "lyon"])
  name     = each.key
}

resource "aws_iam_role" "argocd" {
  name = "argocd"
}

provider "flotilla" {
  clusters = {
    for cluster in concat([aws_eks_cluster.central], values(aws_eks_cluster.store)) : cluster.name => {
      host                   = cluster.endpoint
      cluster_ca_certificate = base64decode(cluster.certificate_authority[0].data)
      token                  = "a-token"
    }
  }
}
