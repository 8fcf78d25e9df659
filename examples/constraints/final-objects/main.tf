# A library of rules for final objects: those that charts and kustomizations come to. The fleet keeps all of them but one that
# informs.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  # Objects that have pods, each by the same path.
  pods = ["apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "batch/Job"]

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
    {
      name               = "pinned-images"
      match              = { kinds = local.pods }
      expression         = "object.spec.template.spec.containers.all(c, c.image.contains('@sha256:') || c.image.matches(':[^:/]+$') && !c.image.endsWith(':latest'))"
      message_expression = "'an image has neither a tag nor a digest, or the tag latest: ' + object.spec.template.spec.containers.map(c, c.image).join(', ')"
    },
    {
      name               = "registries"
      match              = { kinds = local.pods }
      expression         = "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))"
      message_expression = "'its ' + made_by + ' has images of another registry: ' + object.spec.template.spec.containers.map(c, c.image).join(', ')"
    },
    {
      name       = "unprivileged"
      match      = { kinds = local.pods }
      expression = "object.spec.template.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false))"
      message    = "A privileged container owns the machine."
    },
    {
      name       = "apart-from-the-machine"
      match      = { kinds = local.pods }
      expression = "!object.spec.template.spec.?hostNetwork.orValue(false) && !object.spec.template.spec.?hostPID.orValue(false) && object.spec.template.spec.?volumes.orValue([]).all(v, !has(v.hostPath))"
      message    = "A pod uses neither the network, nor the processes, nor the files of its machine."
    },
    {
      name       = "requests-and-limits"
      match      = { kinds = local.pods }
      expression = "object.spec.template.spec.containers.all(c, c.?resources.?requests.?cpu.hasValue() && c.?resources.?limits.?memory.hasValue())"
      message    = "A container requests cpu and limits its memory."
      mode       = "inform"
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
