terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  # The files of a repository would be data.flotilla_repository_files.fleet.files.
  adopted = provider::flotilla::adopt("prod", {
    "clusters/berlin/shop.yaml" = <<-YAML
      apiVersion: source.toolkit.fluxcd.io/v1
      kind: GitRepository
      metadata: { name: shop, namespace: flux-system }
      spec: { interval: 5m, url: https://git.example.com/shop, ref: { branch: main } }
      ---
      apiVersion: kustomize.toolkit.fluxcd.io/v1
      kind: Kustomization
      metadata: { name: shop, namespace: flux-system }
      spec: { interval: 1h, path: ./deploy, prune: true, sourceRef: { kind: GitRepository, name: shop } }
    YAML
  })

  fleet       = provider::flotilla::fleet(local.adopted.fleet)
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

# Empty: everything was taken.
output "listed" {
  value = local.adopted.listed
}
