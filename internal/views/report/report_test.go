package report_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// maxBytes lets a page of 20,000 assignments be sent by mail and read on a phone.
const maxBytes = 8 << 20

func TestReferencePageIsUnder8MiB(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the reference fleet, which -short leaves out")
	}
	page := referencePage(acceptancetest.Count(1_500, 20_000), true)
	const texts, full = 256 << 10, 20_240 // bytes of a page without assignments, and assignments of the full page
	limit := texts + (maxBytes-texts)*len(page.Assignments)/full
	if size := len(renderHTML(t, page)); size >= limit {
		t.Errorf("%d bytes; want fewer than %d", size, limit)
	} else {
		t.Logf("%d bytes", size)
	}
}

func TestValuesAreLeftOutOfLargePages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values, length int
		detail         string
	}{
		"few":                {10, 100, `"detail":2`},
		"long texts":         {10_000, 900, `"detail":1`},
		"long texts of keys": {12_000, 900, `"detail":0`},
	} {
		p := smallPage()
		for i := range test.values {
			value := report.Value{Pointer: fmt.Sprintf("/%d", i), Container: "defaults", Text: strings.Repeat("x", test.length) + strconv.Itoa(i)}
			if test.detail == `"detail":0` {
				value.Pointer, value.Text = value.Text, ""
			}
			p.Assignments[0].Snapshot.Values = append(p.Assignments[0].Snapshot.Values, value)
		}
		page := renderHTML(t, p)
		if len(page) >= maxBytes || !bytes.Contains(page, []byte(test.detail)) {
			t.Errorf("%s: %d bytes, without %s", name, len(page), test.detail)
		}
	}
}

func TestSamePageGivesSameBytes(t *testing.T) {
	t.Parallel()
	first, second := referencePage(400, true), referencePage(400, true)
	if !bytes.Equal(renderHTML(t, first), renderHTML(t, second)) {
		t.Error("HTML differs")
	}
	if report.Markdown(first, 0) != report.Markdown(second, 0) {
		t.Error("Markdown differs")
	}
}

func renderHTML(t testing.TB, p *report.Page) []byte {
	t.Helper()
	text, err := report.HTML(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCommitListsEachDeploymentTargetOnceFirst(t *testing.T) {
	t.Parallel()
	commit := gitops.HistoryCommit{}
	for _, target := range []string{"a", "b", "c"} {
		for host := range 40 {
			commit.Changes = append(commit.Changes, historyChange(folder.Changed, fmt.Sprintf("host-%02d", host), target))
		}
	}
	text := string(renderHTML(t, &report.Page{History: gitops.History{Commits: []gitops.HistoryCommit{commit}}}))
	for _, want := range []string{"host-00/a", "host-00/b", "host-00/c", "host-01/a", "120 assignments", "70 more", "The branch has older commits"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if c := strings.Index(text, "host-00/c"); c > strings.Index(text, "host-01/a") || strings.Contains(text, "host-39/c") {
		t.Error("a target is repeated before each of them is listed")
	}
}
