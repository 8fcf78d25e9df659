package provider_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheGuideSizesFleets reads the table that `make sizing` writes: a row for each size, with figures that grow.
func TestTheGuideSizesFleets(t *testing.T) {
	t.Parallel()
	const head = "assignments | first plan | first apply | plan without changes | memory of the provider | memory of Terraform | state"
	if guide := guideText(t, "ci.md.tmpl"); !strings.Contains(guide, "`make sizing`") || !strings.Contains(guide, "<!-- sizing -->\n| "+head) {
		t.Error("the guide does not say what writes its table, or has no place for it")
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
			t.Fatalf("row %q is in another form than tools/sizing.awk writes it", text)
		}
		for j, cell := range cells[1:] {
			figure, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64)
			if err != nil || figure < before[j] || figure <= 0 {
				t.Errorf("row %q has %q after %v: %v", text, cell, before[j], err)
			}
			before[j] = figure
		}
		if before[0] != float64(sizings[i]) {
			t.Errorf("row %d is of %v assignments", i, before[0])
		}
	}
}
