variable "commit" {
  description = "The commit of this configuration, which CI knows: GITHUB_SHA, CI_COMMIT_SHA, Build.SourceVersion."
  type        = string
  default     = "6c1d7c8a8d1c4f6f0fd0f1c64a1c7c2d6bb4a3f0"
}

resource "flotilla_commit_status" "control_plane" {
  url         = "https://git.example.com/platform/control-plane.git"
  forge       = "gitea" # known by the server's name for github.com, gitlab.com, dev.azure.com, bitbucket.org and others
  commit      = var.commit
  context     = "flotilla/prod"
  state       = "pending"
  description = "2 of 3 stages are rolled out"
  link        = "https://fleet.example.com/prod"
}
