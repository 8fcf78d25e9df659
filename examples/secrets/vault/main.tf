# Config containers say where secrets are, and not what they are. External Secrets Operator brings them from Vault: an
# ExternalSecret in the folder of each assignment becomes a Secret "platform-secrets" on the cluster. The operator and its
# stores are on the clusters:
#
#   apiVersion: external-secrets.io/v1
#   kind: ClusterSecretStore
#   metadata: { name: vault-east }
#   spec:
#     provider:
#       vault: { server: "https://vault.example.com", path: secret, version: v2, auth: { kubernetes: { mountPath: kubernetes, role: shop } } }

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  fleet = provider::flotilla::fleet({
    environment = "prod"
    workspaces  = [{ name = "shop" }]

    cluster_types = [
      {
        name           = "east"
        reconciler     = "flux"
        secret_service = "external-secrets"
        secret_stores  = { vault = { name = "vault-east" } } # "vault" in references, and "vault-east" on these clusters
      },
      {
        name           = "west"
        reconciler     = "argocd"
        secret_service = "external-secrets"
        secret_stores  = { vault = { kind = "SecretStore" } } # one in each namespace, called "vault"
      },
    ]

    workloads = [
      {
        name      = "till" # mounts the Secret platform-secrets, or has its keys in the environment
        workspace = "shop"
        deployment_targets = {
          live = { environment = "prod", manifests = { repo = "https://git.example.com/shop/till" } }
        }
      },
      {
        name      = "search" # a chart that takes an existing Secret
        workspace = "shop"
        deployment_targets = {
          live = {
            environment = "prod"
            config_as   = ["values", "secret:search-credentials"]
            manifests = {
              storage    = "helm"
              repo       = "https://charts.example.com"
              chart      = "search"
              version    = "1.4.0"
              parameters = { helm_release = { values = { auth = { existingSecret = "search-credentials" } } } }
            }
          }
        }
      },
    ]

    target_policies = [
      { name = "everywhere", cluster_type_selector = {} },
    ]

    config_containers = [
      {
        name    = "database"
        data    = { DB_HOST = "db.example.com" }
        secrets = { DB_PASSWORD = { store = "vault", key = "prod/db", property = "password", version = "3" } }
      },
      {
        name    = "database-west" # wins there: it has a label more
        labels  = { cluster-type = "west" }
        secrets = { DB_PASSWORD = { store = "vault", key = "west/db", property = "password", version = "1" } }
      },
      {
        name        = "partners"
        data        = { PARTNER_TOKEN = "test-only-7f3a91" }
        allow_plain = ["PARTNER_TOKEN"] # a token for their public test server
      },
    ]

    config_schemas = [{
      name = "database"
      schema = jsonencode({
        required   = ["DB_PASSWORD"]
        properties = { DB_PASSWORD = { format = "secret" } } # never a plain value
      })
    }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
