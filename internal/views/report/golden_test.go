package report_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The style sheet and the script stand in files of their own, so the golden page
// is without them.
var embedded = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|sha256-[^']+`)

func TestPageOfOneOfEachThing(t *testing.T) {
	t.Parallel()
	golden(t, "small.html", embedded.ReplaceAll(html(t, smallPage()), nil))
	golden(t, "small.md", []byte(report.Markdown(smallPage(), 0)))
	golden(t, "short.md", []byte(report.Markdown(smallPage(), 1200)))
}

func TestPageOfNothing(t *testing.T) {
	t.Parallel()
	golden(t, "empty.html", embedded.ReplaceAll(html(t, &report.Page{}), nil))
	golden(t, "empty.md", []byte(report.Markdown(&report.Page{}, 0)))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("not what was expected; -update rewrites it:\n%s", udiff.Unified(path, "got", string(want), string(got)))
	}
}
