// Package reliabilitytest lets the tests TestReliability... run as often as the
// guide "Reliability" says, and collects the rows of its table. `make
// reliability` names the folder for them; without it they run a few times.
package reliabilitytest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// folder is the environment variable that names the folder for rows.
const folder = "FLOTILLA_RELIABILITY"

// Count is full for a run that is reported, else few.
func Count(few, full int) int {
	if os.Getenv(folder) != "" {
		return full
	}
	return few
}

// Report writes a row of the guide's table into the file of this name, unless
// the test has failed. Names sort as the table shall.
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
