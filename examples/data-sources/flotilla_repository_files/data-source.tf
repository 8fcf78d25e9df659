data "flotilla_repository_files" "control_plane" {
  url     = "https://git.example.com/platform/control-plane.git"
  ref     = "dev" # a branch, a tag, or the full id of a commit
  include = ["**/*.{yaml,yml}"]
  exclude = ["scheduling/experiments"]
}

output "fleet" {
  value = provider::flotilla::control_plane("dev", data.flotilla_repository_files.control_plane.files)
}

output "commit" {
  value = data.flotilla_repository_files.control_plane.commit
}
