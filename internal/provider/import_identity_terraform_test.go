package provider_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// Terraform has identities since 1.12. `make matrix` includes this test.
func TestIdentitiesAreImportedByTerraform(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	repo := bareRepository(t)
	configuration := map[string]string{"main.tf": small{path: "clusters"}.config(repo), "required_providers.tf": requiredProviders}
	tool := allTools(t)["terraform"]
	if !isTerraform(t, tool, 12) {
		t.Skip("Terraform before 1.12, and any other tool, has no identities")
	}
	first := newWorkdir(t, tool, configuration)
	first.run("apply", "-auto-approve", "-input=false")
	commits := repo.commits(t, "dev")

	configuration["import.tf"] = fmt.Sprintf(`
import {
  to       = %s
  identity = { url = %q, branch = "dev", path = "clusters", name = "dev" }
}
`, assignment, repo.url)
	second := newWorkdir(t, tool, configuration)
	imported := false
	for _, change := range second.plan().ResourceChanges {
		imported = imported || change.Address == assignment && change.Change.Importing != nil && change.Change.Actions.NoOp()
	}
	if !imported {
		t.Error("the plan does not import the assignment without a change")
	}
	second.run("apply", "-auto-approve", "-input=false")
	if got := repo.commits(t, "dev"); got != commits {
		t.Errorf("%d commits after the import, want %d", got, commits)
	}
}

// isTerraform reports whether a tool is Terraform 1.<minor> or later.
func isTerraform(t *testing.T, tool string, minor int) bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), tool, "version", "-json")
	command.Dir = t.TempDir()
	text, err := command.Output()
	var version struct {
		Terraform string `json:"terraform_version"`
	}
	if err != nil || json.Unmarshal(text, &version) != nil {
		t.Fatalf("%s prints no version: %v", tool, err)
	}
	major, rest, _ := strings.Cut(version.Terraform, ".")
	second, _, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(second)
	return err == nil && !isTofu(t, tool) && (major != "1" || number >= minor)
}

func isTofu(t *testing.T, tool string) bool {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), tool, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return !strings.HasPrefix(string(text), "Terraform")
}
