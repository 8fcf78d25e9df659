package provider_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheGuideSizesFleets checks the table of `make sizing`: one row for each size, with growing figures.
func TestTheGuideSizesFleets(t *testing.T) {
	t.Parallel()
	const head = "assignments | first plan | first apply | plan without changes | memory of the provider | memory of Terraform | state"
	if guide := guideText(t, "ci.md.tmpl"); !strings.Contains(guide, "`make sizing`") || !strings.Contains(guide, "<!-- sizing -->\n| "+head) {
		t.Error("the guide does not name `make sizing`, or has no table for it")
	}
	row := regexp.MustCompile(`^([\d,]+) \| ([\d.]+) s \| ([\d.]+) s \| ([\d.]+) s \| (\d+) MiB \| (\d+) MiB \| (\d+) KiB $`)
	rows := guideTableOf(t, "ci.md", head).rows
	if len(rows) != len(sizings) {
		t.Fatalf("the table has %q", rows)
	}
	var before [7]float64
	for i, text := range rows {
		cells := row.FindStringSubmatch(text)
		if cells == nil {
			t.Fatalf("row %q does not have the form of tools/sizing.awk", text)
		}
		for j, cell := range cells[1:] {
			figure, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64)
			if err != nil || figure < before[j] || figure <= 0 {
				t.Errorf("row %q has %q after %v: %v", text, cell, before[j], err)
			}
			before[j] = figure
		}
		if before[0] != float64(sizings[i]) {
			t.Errorf("row %d has %v assignments, want %d", i, before[0], sizings[i])
		}
	}
}
