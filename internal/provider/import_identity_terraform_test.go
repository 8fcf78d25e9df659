package provider_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Terraform 1.12 and later import by an identity what another state wrote, and nothing changes by it. `make matrix` has it.
func TestIdentitiesAreImportedByTerraform(t *testing.T) {
	t.Parallel()
	byAcceptance(t)
	repo := bareRepository(t)
	configuration := map[string]string{"main.tf": small{path: "clusters"}.config(repo), "required_providers.tf": requiredProviders}
	first := newWorkdir(t, allTools(t)["terraform"], configuration)
	if !hasIdentities(t, first) {
		t.Skip("Terraform before 1.12, and any other tool, has no identities")
	}
	first.run("apply", "-auto-approve", "-input=false")
	commits := repo.commits(t, "dev")

	configuration["import.tf"] = fmt.Sprintf(`
import {
  to       = %s
  identity = { url = %q, branch = "dev", path = "clusters", name = "dev" }
}
`, assignment, repo.url)
	second := newWorkdir(t, allTools(t)["terraform"], configuration)
	imported := false
	for _, change := range second.plan().ResourceChanges {
		imported = imported || change.Address == assignment && change.Change.Importing != nil && change.Change.Actions.NoOp()
	}
	if !imported {
		t.Error("the plan does not import the assignment as it is")
	}
	second.run("apply", "-auto-approve", "-input=false")
	if got := repo.commits(t, "dev"); got != commits {
		t.Errorf("%d commits after the import, want %d", got, commits)
	}
}

// hasIdentities says whether the tool is Terraform 1.12 or later.
func hasIdentities(t *testing.T, w workdir) bool {
	t.Helper()
	if !strings.HasPrefix(w.run("version"), "Terraform") {
		return false
	}
	var version struct {
		Terraform string `json:"terraform_version"`
	}
	if err := json.Unmarshal([]byte(w.run("version", "-json")), &version); err != nil {
		t.Fatal(err)
	}
	major, rest, _ := strings.Cut(version.Terraform, ".")
	minor, _, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(minor)
	return err == nil && (major != "1" || number >= 12)
}
