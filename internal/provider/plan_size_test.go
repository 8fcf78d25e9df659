package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
)

func configOf500Hosts(url, tag string) string {
	return fmt.Sprintf(`
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [for i in range(500) : { name = format("host-%%03d", i) }]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = { live = { environment = "dev", manifests = { repo = "https://git.example.com/app", tag = %q } } }
    }]
    target_policies = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "dev" }
}
`, tag, url)
}

func TestPlanOfOneTagOn500HostsHas15LinesAndNoDrift(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + configOf500Hosts(url, "v1")})
			w.run("apply", "-input=false", "-auto-approve")
			expectNoDrift(t, w)
			for _, tag := range []string{"v2", "v3"} { // the second change starts from the lines in the state
				writeFile(t, filepath.Join(w.path, "main.tf"), requiredProviders+configOf500Hosts(url, tag))
				output := w.run("plan", "-input=false", "-no-color", "-out=plan.out")
				_, output, _ = strings.Cut(output, "will perform the following actions:\n\n")
				output, _, _ = strings.Cut(output, "\n\nPlan: ")
				if lines := strings.Count(output, "\n") + 1; lines > 15 || !strings.Contains(output, `+ "`+countLine(changes.Counts{Hosts: 500, Changed: 500})) ||
					!strings.Contains(output, "+ \"reconciler.yaml: GitRepository spec.ref.tag") {
					t.Errorf("got %d lines:\n%s", lines, output)
				}
				w.run("apply", "-input=false", "plan.out")
				expectNoDrift(t, w)
			}
		})
	}
}

// expectNoDrift expects no changes in a refresh, a full plan, and a plan without refresh.
func expectNoDrift(t *testing.T, w workdir) {
	t.Helper()
	for _, arguments := range [][]string{{"-refresh-only"}, {}, {"-refresh=false"}} {
		arguments = append([]string{"plan", "-input=false", "-no-color", "-detailed-exitcode"}, arguments...)
		out, output, err := w.try(arguments...)
		if err != nil {
			t.Errorf("%s: %v\n%s%s", strings.Join(arguments, " "), err, out, output)
		}
	}
}
