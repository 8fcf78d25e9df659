# Planned only: wait needs a Flux that runs.
resource "aws_eks_cluster" "store" {
  for_each = toset(["berlin", "lyon"])
  name     = each.key
}

resource "aws_eks_node_group" "store" {
  for_each     = aws_eks_cluster.store
  cluster_name = each.value.name
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}
