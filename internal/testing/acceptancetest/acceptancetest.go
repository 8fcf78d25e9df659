// Package acceptancetest chooses the number of tests. `make test`, for which people wait, runs each kind of test, and a few of
// many similar cases. `make acceptance` sets FLOTILLA_ACCEPTANCE and runs all: each server, each tool, and thousands of random
// cases.
package acceptancetest

import (
	"os"
	"testing"
)

// variable is the environment variable that makes all tests run.
const variable = "FLOTILLA_ACCEPTANCE"

// All reports whether all tests run.
func All() bool { return os.Getenv(variable) != "" }

// Either reports whether a test that goes through Terraform and OpenTofu, or with several agents, goes through one of them, as
// in `make lives` and in .ci/run.
func Either() bool { return os.Getenv(variable) == "either" }

// Only skips a test unless all tests run. Cheaper tests find the same defects, except those of a real server.
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
