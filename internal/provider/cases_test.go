package provider_test

import (
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// playAlways skips a case in `make test` unless always contains its name. The tests of the package that decides the case must
// find the same defects.
func playAlways(t *testing.T, name string, always ...string) {
	t.Helper()
	if !slices.Contains(always, name) {
		acceptancetest.Only(t)
	}
}
