// Package reliabilitytest collects rows of TestReliability... for a guide, in the folder that `make reliability` names.
package reliabilitytest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

const folder = "FLOTILLA_RELIABILITY"

// Count returns full for a reported run, else few.
func Count(few, full int) int {
	if os.Getenv(folder) != "" {
		return full
	}
	return few
}

// Report writes a row into the file of this name, unless the test has failed. The names sort the table.
func Report(t testing.TB, name, what, servers, runs, outcome string) {
	t.Helper()
	t.Logf("%s, %s, %s: %s", what, servers, runs, outcome)
	at := os.Getenv(folder)
	if at == "" || t.Failed() {
		return
	}
	text := fmt.Sprintf("| %s | %s | %s | %s |\n", what, servers, runs, outcome)
	if err := os.WriteFile(filepath.Join(at, name+".md"), []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}
