package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/report"
)

func TestComparisonOfOneOfEachThing(t *testing.T) {
	t.Parallel()
	golden(t, "comparison.md", []byte(report.ComparisonMarkdown(smallComparison(), 0)))
	golden(t, "comparison-short.md", []byte(report.ComparisonMarkdown(smallComparison(), 1200)))
	same := smallComparison()
	same.Counts, same.Targets, same.Notes = comparison.Counts{Same: 1}, nil, nil
	same.Right.Name, same.Right.Branch, same.Right.Path = same.Left.Name, same.Left.Branch, same.Left.Path
	golden(t, "comparison-same.md", []byte(report.ComparisonMarkdown(same, 0)))
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
		if len(text) > limit || limit < 65536 && !strings.Contains(text, "would not fit") || limit == 65536 && !strings.Contains(text, "… and 1,978 more.") {
			t.Errorf("%d bytes of %d:\n%s", len(text), limit, text)
		}
	}
}
