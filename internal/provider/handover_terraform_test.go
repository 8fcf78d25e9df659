package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// assignmentsOf returns assignments to one path, each with an address, a name, deployment targets and further HCL.
func assignmentsOf(url string, assignments ...[4]string) string {
	text := requiredProviders
	for _, one := range assignments {
		address, name, targets, further := one[0], one[1], one[2], one[3]
		text += fmt.Sprintf(`
resource "flotilla_assignment" %[2]q {
  name        = %[3]q
  gitops_repo = { url = %[1]q, branch = "dev", path = "clusters" }
  protection  = { max_removed_percent = 100, emptied_hosts = ["large"] }
  %[5]s
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [{ name = "large" }]
    workloads = [for name in [%[4]s] : {
      name               = name
      workspace          = "team"
      deployment_targets = { live = { environment = "dev", manifests = { repo = "https://git.example.com/app" } } }
    }]
    target_policies = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
  })
}
`, url, address, name, targets, further)
	}
	return text
}

// Terraform chooses the order of plans and applies.
func TestTerraformRemovesNothingThatTheSameApplyAdds(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		for change, test := range map[string]struct {
			before, after [][4]string
			want          string
		}{
			"a renamed address": {
				[][4]string{{"old", "dev", `"a", "b"`, ""}},
				[][4]string{{"new", "dev", `"a", "b"`, ""}},
				`The assignment "dev" removes 2 folders that the assignment "dev" adds: clusters/large/a-live, clusters/large/b-live`,
			},
			"a handover": {
				[][4]string{{"one", "one", `"a", "b"`, ""}, {"two", "two", `"c"`, ""}},
				[][4]string{{"one", "one", `"b"`, ""}, {"two", "two", `"a", "c"`, "adopt = true"}},
				`The assignment "one" removes 1 folder that the assignment "two" adds: clusters/large/a-live`,
			},
			"a handover in order": {
				[][4]string{{"one", "one", `"a", "b"`, ""}, {"two", "two", `"c"`, ""}},
				[][4]string{{"one", "one", `"b"`, ""}, {"two", "two", `"a", "c"`, "adopt = true\n  depends_on = [flotilla_assignment.one]"}},
				`The assignment "one" removes 1 folder that the assignment "two" adds: clusters/large/a-live`,
			},
			"a handover in the other order": {
				[][4]string{{"one", "one", `"a", "b"`, ""}, {"two", "two", `"c"`, ""}},
				[][4]string{{"one", "one", `"b"`, "depends_on = [flotilla_assignment.two]"}, {"two", "two", `"a", "c"`, "adopt = true"}},
				`The assignment "one" removes 1 folder that the assignment "two" adds: clusters/large/a-live`,
			},
		} {
			t.Run(name+"/"+change, func(t *testing.T) {
				t.Parallel()
				repo := bareRepository(t)
				w := newWorkdir(t, tool, map[string]string{"main.tf": assignmentsOf(repo.url, test.before...)})
				w.run("apply", "-input=false", "-auto-approve")
				tip := git(t, repo.url, "rev-parse", "dev")
				writeFile(t, filepath.Join(w.path, "main.tf"), assignmentsOf(repo.url, test.after...))
				_, stderr, err := w.try("apply", "-input=false", "-auto-approve", "-no-color")
				for _, want := range []string{handoverSummary, test.want, "moved { from"} {
					if err == nil || !words(want).MatchString(stderr) {
						t.Errorf("the error lacks %q: %s", want, stderr)
					}
				}
				if now := git(t, repo.url, "rev-parse", "dev"); now != tip {
					t.Errorf("the failed apply wrote commit %s", now)
				}
			})
		}
	}
}

// The provider does not see the move.
func TestTerraformMovesAnAssignmentInTheState(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			w := newWorkdir(t, tool, map[string]string{"main.tf": assignmentsOf(repo.url, [4]string{"old", "dev", `"a", "b"`, ""})})
			w.run("apply", "-input=false", "-auto-approve")
			tip := git(t, repo.url, "rev-parse", "dev")
			w.run("state", "mv", "flotilla_assignment.old", "flotilla_assignment.new")
			writeFile(t, filepath.Join(w.path, "main.tf"), assignmentsOf(repo.url, [4]string{"new", "dev", `"a", "b"`, ""}))
			w.run("plan", "-input=false", "-detailed-exitcode")
			writeFile(t, filepath.Join(w.path, "main.tf"), assignmentsOf(repo.url, [4]string{"new", "dev", `"a"`, ""}))
			w.run("apply", "-input=false", "-auto-approve")
			if changed := git(t, repo.url, "diff", "--name-only", tip, "dev", "--", "clusters/large"); changed == "" ||
				strings.Contains(changed, "a-live") {
				t.Errorf("the next apply changes\n%s", changed)
			}
		})
	}
}
