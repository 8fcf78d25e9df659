package reliabilitytest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// failed is a test that has failed.
type failed struct{ testing.TB }

func (failed) Failed() bool { return true }

func TestOnlyAReportedRunCountsFullyAndWritesRows(t *testing.T) {
	t.Setenv("FLOTILLA_RELIABILITY", "")
	if got := reliabilitytest.Count(2, 100); got != 2 {
		t.Errorf("Count is %d without a folder", got)
	}
	reliabilitytest.Report(t, "nowhere", "what", "servers", "2", "outcome")

	folder := t.TempDir()
	t.Setenv("FLOTILLA_RELIABILITY", folder)
	if got := reliabilitytest.Count(2, 100); got != 100 {
		t.Errorf("Count is %d with a folder", got)
	}
	reliabilitytest.Report(t, "10-row", "what", "servers", "100", "outcome")
	reliabilitytest.Report(failed{t}, "20-failed", "what", "servers", "100", "outcome")
	if text, err := os.ReadFile(filepath.Join(folder, "10-row.md")); err != nil || string(text) != "| what | servers | 100 | outcome |\n" {
		t.Errorf("the row is %q, %v", text, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}
