package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

func TestMarkdownOfEveryPartOfAComparison(t *testing.T) {
	t.Parallel()
	checkGolden(t, "comparison.md", []byte(report.ComparisonMarkdown(smallComparison(), 0)))
	checkGolden(t, "comparison-short.md", []byte(report.ComparisonMarkdown(smallComparison(), 1200)))
	same := smallComparison()
	same.Counts, same.Targets, same.Notes = comparison.Counts{Same: 1}, nil, nil
	same.Right.Name, same.Right.Branch, same.Right.Path = same.Left.Name, same.Left.Branch, same.Left.Path
	checkGolden(t, "comparison-same.md", []byte(report.ComparisonMarkdown(same, 0)))
}

func TestMarkdownOfALargeComparisonIsBounded(t *testing.T) {
	t.Parallel()
	result := smallComparison()
	for i := range 2000 {
		target := result.Targets[0]
		target.Name = fmt.Sprintf("app-%04d", i)
		result.Targets = append(result.Targets, target)
	}
	result.Different = 2003
	for _, limit := range []int{1024, 4096, 65536} {
		text := report.ComparisonMarkdown(result, limit)
		if len(text) > limit || limit < 65536 && !strings.Contains(text, "would not fit") ||
			limit == 65536 && !strings.Contains(text, "… and 1,978 more.") {
			t.Errorf("%d bytes of %d:\n%s", len(text), limit, text)
		}
	}
}

// A page leaves out values if it would be too large. Its size includes comparisons of the maximal size.
func TestPageWithLargeComparisonsIsUnder8MiB(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"short texts": "x", "quotes": strings.Repeat(`"`, 150), "marks": strings.Repeat("<", 150)} {
		result := smallComparison()
		for i := range 32 {
			target := result.Targets[0]
			target.Name, target.Keys = fmt.Sprintf("app-%04d", i), nil
			for j := range 60 {
				target.Keys = append(
					target.Keys,
					comparison.Key{Key: fmt.Sprint(j), State: comparison.Different, Left: []string{text}, Right: []string{text, text}},
				)
			}
			result.Targets = append(result.Targets, target)
		}
		written, err := result.Marshal(true)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := comparison.Parse(written)
		if err != nil {
			t.Fatal(err)
		}
		p := smallPage()
		p.Comparisons = nil
		without := len(renderHTML(t, p))
		for range report.MaxComparisons {
			p.Comparisons = append(p.Comparisons, report.Comparison{Name: "stage and prod", Result: parsed})
		}
		if size := len(renderHTML(t, p)) - without; size > 3*report.MaxComparisons*len(written) {
			t.Errorf("%s: comparisons of %d bytes take %d", name, report.MaxComparisons*len(written), size)
		}
		if name != "marks" && !acceptancetest.All() { // escaped marks are the longest
			continue
		}
		for i := range 11_200 { // values that fit without the comparisons
			p.Assignments[0].Snapshot.Values = append(
				p.Assignments[0].Snapshot.Values,
				report.Value{Pointer: fmt.Sprintf("/%d", i), Container: "a", Text: strings.Repeat("x", 600) + fmt.Sprint(i)},
			)
		}
		if size := len(renderHTML(t, p)); size >= maxBytes {
			t.Errorf("%s: %d bytes", name, size)
		}
		p.Comparisons = nil
		if page := renderHTML(t, p); !bytes.Contains(page, []byte(`"detail":2`)) {
			t.Errorf("%s: values are left out of a page without comparisons, of %d bytes", name, len(page))
		}
	}
}
