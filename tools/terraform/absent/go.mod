// Stand-ins for modules that Terraform keeps for itself. It requires nothing: its packages are built only as a part of
// tools/terraform and tools/terraform-1.11, with what those require.
module github.com/hashicorp/terraform/internal/backend/remote-state

go 1.23.3
