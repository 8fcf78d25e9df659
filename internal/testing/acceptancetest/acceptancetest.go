// Package acceptancetest chooses the number of tests: few cases in `make test`; every server, tool and random case in
// `make acceptance`, which sets FLOTILLA_ACCEPTANCE.
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

// Only skips a test unless all tests run. Cheaper tests must find the same defects.
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
