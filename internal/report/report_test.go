package report_test

import (
	"bytes"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/report"
)

// The page of 20,000 assignments can be sent by mail, and read on a phone.
const mostBytes = 8 << 20

func TestReferencePageIsUnder8MiB(t *testing.T) {
	t.Parallel()
	for _, showValues := range []bool{false, true} {
		page := html(t, referencePage(t, 20_000, showValues))
		t.Logf("%d bytes, with values: %v", len(page), showValues)
		if len(page) >= mostBytes {
			t.Errorf("%d bytes with values: %v; want fewer than %d", len(page), showValues, mostBytes)
		}
	}
}

func TestSamePageGivesSameBytes(t *testing.T) {
	t.Parallel()
	first, second := referencePage(t, 400, true), referencePage(t, 400, true)
	if !bytes.Equal(html(t, first), html(t, second)) {
		t.Error("HTML differs")
	}
	if report.Markdown(first, 0) != report.Markdown(second, 0) {
		t.Error("Markdown differs")
	}
}

func html(t testing.TB, p *report.Page) []byte {
	t.Helper()
	text, err := report.HTML(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
