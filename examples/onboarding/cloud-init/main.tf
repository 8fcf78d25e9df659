# A machine makes itself a cluster that follows its folders: nobody has to reach it.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

variable "gitops_token" {
  description = "May read the GitOps repository, and nothing else."
  type        = string
  sensitive   = true
  default     = "an-example"
}

locals {
  gitops_repo = {
    url    = "https://git.example.com/platform/gitops"
    branch = "prod"
  }

  # All machines of the edge, each a cluster of one node.
  machines = { for number in range(1, 4) : "store-${number}" => { region = "east" } }

  manifests = {
    for name, machine in local.machines : name => join("---\n", provider::flotilla::agent_manifests({
      cluster      = name
      cluster_type = "store"
      reconciler   = "flux"
      gitops_repo  = local.gitops_repo
      credentials  = { token = var.gitops_token }
    }))
  }

  # K3s applies what it finds in this folder, again and again until it can, so that nothing has to come first.
  manifests_folder = "/var/lib/rancher/k3s/server/manifests"

  user_data = {
    for name, text in local.manifests : name => join("\n", ["#cloud-config", yamlencode({
      write_files = [
        { path = "${local.manifests_folder}/flotilla.yaml", permissions = "0600", encoding = "b64", content = base64encode(text) },
      ]
      runcmd = [
        "curl -sfL https://get.k3s.io | sh -s - --node-name ${name}",
        "curl -sfL https://github.com/fluxcd/flux2/releases/latest/download/install.yaml -o ${local.manifests_folder}/flux.yaml",
      ]
    })])
  }
}

# The fleet knows the machines by the same names.
locals {
  fleet = provider::flotilla::fleet({
    environment   = "prod"
    cluster_types = [{ name = "store", reconciler = "flux" }]
    clusters      = [for name, machine in local.machines : { name = name, cluster_type = "store", labels = machine }]
  })
}

# Give this to the machines as `user_data` of aws_instance, `custom_data` of azurerm_linux_virtual_machine, or
# `metadata.user-data` of google_compute_instance.
output "user_data" {
  value     = local.user_data
  sensitive = true
}
