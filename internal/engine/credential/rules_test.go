package credential_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// rules.json has what tools/credentialrules makes of the version of gitleaks that its go.mod names.
func TestTheRulesAreThoseOfGitleaks(t *testing.T) {
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
