package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The documentation promises this behavior.
func TestSensitiveAndEphemeralValuesInAFleet(t *testing.T) {
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			repository := filepath.Join(t.TempDir(), "gitops.git")
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + `
variable "secret" {
  type      = string
  sensitive = true
  default   = "a-sensitive-value"
}
variable "passing" {
  type      = string
  ephemeral = true
}
locals {
  of = { for name, value in { sensitive = var.secret, ephemeral = var.passing } : name => {
    environment       = "dev"
    workspaces        = [{ name = "shop" }]
    cluster_types     = [{ name = "edge", reconciler = "flux" }]
    workloads         = [{ name = "web", workspace = "shop", deployment_targets = { live = { environment = "dev", manifests = { repo = "https://git.example.com/web", tag = "v1", path = "./deploy" } } } }]
    target_policies   = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
    config_containers = [{ name = "one", data = { KEY = value } }]
  } }
  fleet = provider::flotilla::fleet(local.of.ephemeral)
}
resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = ` + "\"" + filepath.ToSlash(repository) + "\"" + `, branch = "dev" }
}
data "flotilla_diff" "dev" {
  name        = "dev"
  fleet       = provider::flotilla::fleet(local.of.sensitive)
  gitops_repo = { url = ` + "\"" + filepath.ToSlash(repository) + "\"" + `, branch = "dev" }
}
output "diff" {
  value = data.flotilla_diff.dev.diff
}
`})
			if printed := w.run("plan", "-input=false", "-out=plan.out", "-no-color", "-var=passing=an-ephemeral-value"); !strings.Contains(
				printed,
				"KEY: a-sensitive-value",
			) {
				t.Errorf("the plan lacks the diff:\n%s", printed)
			}
			// A value that differs from the plan stops the apply before it writes.
			if stdout, stderr, err := w.try("apply", "-input=false", "-no-color", "-var=passing=another", "plan.out"); err == nil ||
				!strings.Contains(stderr, "inconsistent final plan") {
				t.Errorf("the apply accepted an ephemeral value that differs from the plan:\n%s%s", stdout, stderr)
			}
			if _, err := os.Stat(filepath.Join(repository, "refs", "heads", "dev")); err == nil {
				t.Error("the apply with another value wrote the branch")
			}
			// The planned value is committed in plain text.
			w.run("plan", "-input=false", "-out=plan.out", "-no-color", "-var=passing=an-ephemeral-value")
			w.run("apply", "-input=false", "-no-color", "-var=passing=an-ephemeral-value", "plan.out")
			if committed := git(t, repository, "show", "dev:edge/web-live/platform-config.yaml"); !strings.Contains(
				committed,
				"KEY: an-ephemeral-value",
			) {
				t.Errorf("the apply committed\n%s", committed)
			}
		})
	}
}
