# A library of rules for final objects: those that charts and kustomizations render to. The fleet keeps all of them but one that
# informs.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  # Objects that make an agent bring others.
  pointers = [
    "kustomize.toolkit.fluxcd.io/Kustomization", "helm.toolkit.fluxcd.io/HelmRelease", "fluxcd.controlplane.io/ResourceSet",
    "argoproj.io/Application", "argoproj.io/ApplicationSet",
    "fleet.cattle.io/GitRepo", "fleet.cattle.io/HelmOp", "fleet.cattle.io/Bundle", "fleet.cattle.io/BundleDeployment",
    "configsync.gke.io/RootSync", "configsync.gke.io/RepoSync",
  ]

  # The version of Kubernetes that no longer has a version of an API.
  removed = {
    "apps/v1beta1"                         = "1.16"
    "apps/v1beta2"                         = "1.16"
    "extensions/v1beta1"                   = "1.22"
    "networking.k8s.io/v1beta1"            = "1.22"
    "rbac.authorization.k8s.io/v1beta1"    = "1.22"
    "batch/v1beta1"                        = "1.25"
    "policy/v1beta1"                       = "1.25"
    "autoscaling/v2beta1"                  = "1.25"
    "autoscaling/v2beta2"                  = "1.26"
    "flowcontrol.apiserver.k8s.io/v1beta2" = "1.29"
    "flowcontrol.apiserver.k8s.io/v1beta3" = "1.32"
  }

  constraints = [
    # Rules with pods, containers or images are about objects that have pods, of any kind.
    {
      name               = "pinned-images"
      expression         = "images.all(i, i.contains('@sha256:') || i.matches(':[^:/]+$') && !i.endsWith(':latest'))"
      message_expression = "'an image has neither a tag nor a digest, or the tag latest: ' + images.join(', ')"
    },
    {
      name               = "registries"
      expression         = "images.all(i, i.startsWith('registry.example.com/'))"
      message_expression = "'its ' + made_by + ' has images of another registry: ' + images.filter(i, !i.startsWith('registry.example.com/')).join(', ')"
    },
    {
      # Kubernetes' Pod Security Standard "baseline", as the API server itself checks it.
      name               = "pod-security"
      expression         = "pods.all(p, size(p.baseline) == 0)"
      message_expression = "pods.map(p, p.baseline).flatten().distinct().join('; ')"
    },
    {
      name               = "pod-security-restricted"
      expression         = "pods.all(p, size(p.restricted) == 0)"
      message_expression = "pods.map(p, p.restricted).flatten().distinct().join('; ')"
      mode               = "inform"
    },
    {
      name       = "requests-and-limits"
      expression = "containers.all(c, c.?resources.?requests.?cpu.hasValue() && c.?resources.?limits.?memory.hasValue())"
      message    = "A container requests cpu and limits its memory."
      mode       = "inform"
    },
    {
      # An object of Flux, Argo CD, Rancher Fleet or Config Sync brings more objects, which no rule sees.
      name       = "no-pointers-in-manifests"
      match      = { kinds = local.pointers }
      expression = "made_by == 'flotilla'"
      message    = "It brings objects that no rule sees: describe it as a deployment target."
    },
    {
      # To see what stands in the way of an upgrade, plan with the next kubernetes_version of a cluster type.
      name               = "apis-that-are-there"
      expression         = "host.kubernetes_version == '' || !(object.apiVersion in ${jsonencode(local.removed)}) || semver(host.kubernetes_version, true).isLessThan(semver(${jsonencode(local.removed)}[object.apiVersion], true))"
      message_expression = "object.apiVersion + ' is not in Kubernetes ' + host.kubernetes_version + ': ' + object.kind + ' ' + object.metadata.name"
    },
  ]

  workloads = [{
    name      = "till"
    workspace = "shop"
    deployment_targets = {
      live = {
        environment = "prod"
        manifests   = { storage = "helm", repo = "https://charts.example.com", chart = "till", version = "1.x" }
      }
    }
  }]

  fleet = provider::flotilla::fleet({
    environment     = "prod"
    workspaces      = [{ name = "shop" }]
    cluster_types   = [{ name = "store", render = "preview", kubernetes_version = "1.33" }]
    workloads       = local.workloads
    artifacts       = data.flotilla_artifacts.prod.artifacts
    target_policies = [{ name = "everywhere", cluster_type_selector = {} }]
    constraints     = local.constraints
  })
}

data "flotilla_artifacts" "prod" {
  workloads   = local.workloads
  environment = "prod"
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}
