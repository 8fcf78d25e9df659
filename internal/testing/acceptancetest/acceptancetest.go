// Package acceptancetest chooses the number of tests. `make test` runs each kind of test with a few of many similar cases;
// `make acceptance` sets FLOTILLA_ACCEPTANCE and runs every server, tool and random case.
package acceptancetest

import (
	"os"
	"testing"
)

const variable = "FLOTILLA_ACCEPTANCE"

// All reports whether all tests run.
func All() bool { return os.Getenv(variable) != "" }

// Either reports whether tests with several tools or agents use one of them, as in `make lives` and .ci/run.
func Either() bool { return os.Getenv(variable) == "either" }

// Only skips a test unless all tests run. Cheaper tests must find the same defects, except those of a real server.
func Only(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("`make acceptance` runs it")
	}
}

// Count returns all if all tests run, else few.
func Count(few, all int) int {
	if All() {
		return all
	}
	return few
}
