// Package acceptancetest says how much the tests do. `make test`, for which people wait, runs each kind of test, and of
// many alike a few. `make acceptance` sets FLOTILLA_ACCEPTANCE and runs all: each server, each tool, and random cases by
// the thousand.
package acceptancetest

import (
	"os"
	"testing"
)

// variable is the environment variable by which all tests run.
const variable = "FLOTILLA_ACCEPTANCE"

// All reports whether all tests run.
func All() bool { return os.Getenv(variable) != "" }

// Either reports whether a test that goes through Terraform and OpenTofu, or with several agents, goes through one of them, as
// in `make lives` and in .ci/run.
func Either() bool { return os.Getenv(variable) == "either" }

// Only skips a test unless all tests run. What it finds in seconds, with a server or by many more cases, others find
// with less, but for what the server itself does.
func Only(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("`make acceptance` runs it")
	}
}

// Count is all where all tests run, else few.
func Count(few, all int) int {
	if All() {
		return all
	}
	return few
}
