package gitops_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// reliabilityDirectory, when the environment has it, gets the figures of the
// tests TestReliability..., a file of table rows for each, and makes them run
// as often as the guide "Reliability" says. Without it they run a few times.
const reliabilityDirectory = "FLOTILLA_RELIABILITY"

// count is full for a run that is reported, else few.
func count(few, full int) int {
	if os.Getenv(reliabilityDirectory) != "" {
		return full
	}
	return few
}

// row is a line of the guide's table.
type row struct{ what, servers, runs, outcome string }

// report writes rows of the guide's table into the file of this name; names
// sort as the table shall.
func report(t *testing.T, name string, rows ...row) {
	t.Helper()
	var text string
	for _, r := range rows {
		text += fmt.Sprintf("| %s | %s | %s | %s |\n", r.what, r.servers, r.runs, r.outcome)
		t.Logf("%s, %s, %s: %s", r.what, r.servers, r.runs, r.outcome)
	}
	directory := os.Getenv(reliabilityDirectory)
	if directory == "" || t.Failed() {
		return
	}
	if err := os.WriteFile(filepath.Join(directory, name+".md"), []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}
