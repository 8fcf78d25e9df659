package credential_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// rules.json is the output of tools/credentialrules for the version of gitleaks in its go.mod.
func TestRulesMatchGitleaks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a program")
	}
	command := exec.CommandContext(t.Context(), "go", "run", ".")
	command.Dir, command.Stderr = filepath.Join("..", "..", "..", "tools", "credentialrules"), os.Stderr
	want, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("rules.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("rules.json is not what tools/credentialrules writes: run `make rules`")
	}
}
