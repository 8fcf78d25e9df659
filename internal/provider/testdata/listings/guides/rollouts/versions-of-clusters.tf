data "flotilla_cluster_facts" "all" {}

resource "flotilla_rollout" "kubernetes" {
  name     = "kubernetes"
  wanted   = "1.31"
  evidence = data.flotilla_cluster_facts.all.evidence
  stages   = []
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    cluster_types = local.cluster_types
    clusters      = [{ name = "aks-canary", cluster_type = "store" }]
  })
}
