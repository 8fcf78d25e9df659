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

// embedded matches the style sheet and the script, which have files of their own.
var embedded = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|sha256-[^']+`)

func TestPageWithEveryPart(t *testing.T) {
	t.Parallel()
	checkGolden(t, "small.html", embedded.ReplaceAll(renderHTML(t, smallPage()), nil))
	checkGolden(t, "small.md", []byte(report.Markdown(smallPage(), 0)))
	checkGolden(t, "short.md", []byte(report.Markdown(smallPage(), 1200)))
}

func TestEmptyPage(t *testing.T) {
	t.Parallel()
	checkGolden(t, "empty.html", embedded.ReplaceAll(renderHTML(t, &report.Page{}), nil))
	checkGolden(t, "empty.md", []byte(report.Markdown(&report.Page{}, 0)))
}

func checkGolden(t *testing.T, name string, got []byte) {
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
		t.Errorf("the output differs from the golden file; -update rewrites it:\n%s", udiff.Unified(path, "got", string(want), string(got)))
	}
}
