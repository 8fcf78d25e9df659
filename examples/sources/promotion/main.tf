# Dev has the newest commit of the control plane.
data "flotilla_repository_files" "newest" {
  url     = "https://git.example.com/platform/control-plane.git"
  ref     = "main"
  include = ["**/*.yaml"]
}

locals {
  dev = provider::flotilla::fleet({
    environment   = "dev"
    base          = provider::flotilla::control_plane("dev", data.flotilla_repository_files.newest.files)
    cluster_types = [{ name = "dev-large" }]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.dev
  candidate   = data.flotilla_repository_files.newest.commit
  gitops_repo = { url = "gitops.git", branch = "dev" }
}

# Stage gets a commit once all of it is on the branch of dev.
resource "flotilla_promotion" "stage" {
  candidate = flotilla_assignment.dev.proven
}

data "flotilla_repository_files" "promoted" {
  url     = "https://git.example.com/platform/control-plane.git"
  ref     = coalesce(flotilla_promotion.stage.promoted, "v1") # until something is promoted
  include = ["**/*.yaml"]
}

locals {
  stage = provider::flotilla::fleet({
    environment   = "stage"
    base          = provider::flotilla::control_plane("stage", data.flotilla_repository_files.promoted.files)
    cluster_types = [{ name = "stage-large" }]
  })
}

resource "flotilla_assignment" "stage" {
  name        = "stage"
  fleet       = local.stage
  gitops_repo = { url = "gitops.git", branch = "stage" }
}
