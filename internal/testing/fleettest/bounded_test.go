//go:build !race

package fleettest_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// failures counts the failures of a test.
type failures struct {
	testing.TB
	messages []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, _ ...any) { f.messages = append(f.messages, format) }

func TestBoundedFailsIfTooMuchIsTaken(t *testing.T) {
	f := &failures{TB: t}
	var kept [][]byte
	fleettest.Bounded(f, "x", func() { kept = append(kept, make([]byte, 63<<20)) })
	fleettest.Bounded(f, strings.Repeat("x", 1<<20), func() { kept = append(kept, make([]byte, 65<<20)) })
	if len(f.messages) > 0 {
		t.Errorf("%q of what is within bounds, or of a large input", f.messages)
	}
	fleettest.Bounded(f, "x", func() { kept = append(kept, make([]byte, 65<<20)) })
	if len(f.messages) != 1 || len(kept) != 3 {
		t.Errorf("%q of 65 MiB for one byte", f.messages)
	}
}
