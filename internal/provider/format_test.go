package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the first version of the provider left, state and repository, is in testdata/format-1.
func TestStateAndRepositoryOfTheFirstFormatAreRead(t *testing.T) {
	t.Parallel()
	for name, tool := range oneTool(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(file string) string {
				text, err := os.ReadFile(filepath.Join("testdata", "format-1", file))
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": read("main.tf")})
			writeFile(t, filepath.Join(w.path, "terraform.tfstate"), read("terraform.tfstate"))
			repository := filepath.Join(w.path, "gitops.git")
			git(t, w.path, "init", "-q", "--bare", "gitops.git")
			history, err := os.Open(filepath.Join("testdata", "format-1", "gitops.fast-export"))
			if err != nil {
				t.Fatal(err)
			}
			defer history.Close()
			command := exec.Command("git", "-C", repository, "fast-import", "--quiet")
			command.Stdin = history
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("git fast-import: %s", out)
			}
			before := strings.Split(git(t, repository, "ls-tree", "-r", "-d", "--name-only", "dev"), "\n")

			planned := change(t, w.plan(), "flotilla_assignment.dev")
			if !planned.Actions.Update() && !planned.Actions.NoOp() {
				t.Fatalf("the plan is to %v", planned.Actions)
			}
			if lines, _ := field(planned.After, "changes").([]any); len(lines) > 0 && !strings.Contains(lines[0].(string), "none is added; none is removed") {
				t.Errorf("changes: %q", lines)
			}
			w.run("apply", "-input=false", "plan.out")
			w.plan("-detailed-exitcode")
			if after := strings.Split(git(t, repository, "ls-tree", "-r", "-d", "--name-only", "dev"), "\n"); strings.Join(before, "\n") != strings.Join(after, "\n") {
				t.Errorf("the folders were\n%q\nand are\n%q", before, after)
			}
			if got := git(t, repository, "rev-list", "--count", "dev"); got != "1" && got != "2" {
				t.Errorf("%s commits, want at most one more", got)
			}
		})
	}
}
