locals {
  # What the API lists, as it lists it: the bodies of GET /applications, /clusters, /namespaces and /targetpolicies.
  inventory = {
    applications = jsonencode({ items = [{
      _id      = "b4c1", name = "app1", description = "App 1", namespace = "retail"
      repo_url = "https://dev.azure.com/contoso/_git/app_k8s", repo_branch = "master", repo_path = "manifest/app1"
      metadata = { common = "true", name = "app1" }, onboard_status = "COMPLETED"
    }] })
    clusters = jsonencode({ items = [
      { _id = "0d2f", name = "east-1", short_name = null, environment = "nonprod", metadata = { region = "east", gpu = "true" } },
      { _id = "7a90", name = "south-1", short_name = null, environment = "nonprod", metadata = { region = "south" } },
    ] })
    namespaces = jsonencode({ items = [{ _id = "11ce", name = "retail", group = ["retail-nonprod"] }] })
    targetpolicies = jsonencode({ items = [{
      _id          = "98aa", name = "common-to-the-east", operation = "CREATE"
      app_selector = { common = "true" }, cluster_selector = { region = "east,north" }
    }] })
  }

  # Its Applications read a folder for each environment and cluster, and go to the namespace of the team. Leave the
  # template out, and use the reconciler argocd, where the folder of an application is the same on all clusters.
  reconciler = <<-YAML
    apiVersion: scheduler.kalypso.io/v1alpha1
    kind: ClusterType
    metadata:
      name: default
    spec:
      reconciler: folder-per-cluster
    ---
    apiVersion: scheduler.kalypso.io/v1alpha1
    kind: Template
    metadata:
      name: folder-per-cluster
    spec:
      type: reconciler
      manifests:
        - |
          apiVersion: argoproj.io/v1alpha1
          kind: Application
          metadata:
            name: {{ .Workload }}-{{ .Environment }}
            namespace: argocd
            finalizers: [resources-finalizer.argocd.argoproj.io]
          spec:
            project: default
            source:
              repoURL: {{ .Manifests.repo }}
              targetRevision: {{ .Manifests.branch }}
              path: {{ .Manifests.path }}/{{ .Environment }}/{{ .Cluster }}
            destination:
              server: https://kubernetes.default.svc
              namespace: {{ .Workspace }}
            syncPolicy:
              automated: { prune: true, selfHeal: true }
              syncOptions: [CreateNamespace=true]
  YAML

  fleet       = provider::flotilla::control_plane("nonprod", merge(local.inventory, { reconciler = local.reconciler }))
  gitops_repo = { url = "gitops.git", branch = "nonprod" }
}

resource "flotilla_assignment" "nonprod" {
  name        = "nonprod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

# What the master manifest was: it makes a cluster follow its folder. flotilla_agent applies it.
output "master_manifest" {
  value = provider::flotilla::agent_manifests({
    cluster      = "east-1"
    cluster_type = "default"
    reconciler   = "argocd"
    gitops_repo  = merge(local.gitops_repo, { url = "https://git.example.com/platform/gitops.git" })
  })
}
