# Flux: everything that its objects can say, for all deployment targets of a cluster type or for one.

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

    cluster_types = [{
      name       = "edge"
      reconciler = "flux" # the default

      # For all that goes to this cluster type.
      parameters = {
        kustomization = { interval = "30m", retryInterval = "1m", timeout = "3m" }
        helm_release  = { interval = "30m", install = { remediation = { retries = 3 } }, upgrade = { remediation = { retries = 3 } } }
        # Which keys and certificates are trusted is for the platform to say: deployment targets cannot.
        git_repository  = { interval = "5m", verify = { mode = "HEAD", secretRef = { name = "signers" } } }
        helm_repository = { interval = "1h", certSecretRef = { name = "charts-ca" } }
        oci_repository  = { interval = "10m", verify = { provider = "cosign", secretRef = { name = "cosign-keys" } } }
      }
    }]

    workloads = [
      {
        name      = "till"
        workspace = "shop"
        deployment_targets = {
          # A folder of a Git repository: a GitRepository and a Kustomization.
          live = {
            environment = "prod"
            manifests = {
              repo = "https://git.example.com/shop/till"
              tag  = "v1.4.0"
              path = "./deploy"
              parameters = {
                secret_ref = "shop-git" # the Secret in flux-system with the credentials of the source
                kustomization = {
                  timeout    = "10m" # over the cluster type's
                  wait       = false
                  decryption = { provider = "sops", secretRef = { name = "shop-age" } }
                  patches = [{
                    target = { kind = "Deployment", name = "till" }
                    patch  = "- op: replace\n  path: /spec/replicas\n  value: 3\n"
                  }]
                  healthChecks = [{ apiVersion = "apps/v1", kind = "Deployment", name = "till", namespace = "till" }]
                }
              }
            }
          }

          # An artifact of a registry: an OCIRepository and a Kustomization.
          canary = {
            environment = "prod"
            manifests = {
              storage = "oci"
              repo    = "oci://registry.example.com/shop/till"
              tag     = "v1.5.0-rc.1"
              parameters = {
                oci_repository = { provider = "aws" }
              }
            }
          }
        }
      },
      {
        name      = "cache"
        workspace = "shop"
        deployment_targets = {
          # A chart: a HelmRepository and a HelmRelease.
          live = {
            environment = "prod"
            manifests = {
              storage = "helm"
              repo    = "https://charts.example.com"
              chart   = "redis"
              version = "19.6.4"
              parameters = {
                values = { architecture = "standalone", auth = { enabled = false } }
                helm_release = {
                  driftDetection = { mode = "enabled" }
                  chart          = { spec = { valuesFiles = ["values.yaml", "values-production.yaml"] } }
                  upgrade        = { remediation = { retries = 1, remediateLastFailure = true } }
                }
              }
            }
          }
        }
      },
    ]

    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
