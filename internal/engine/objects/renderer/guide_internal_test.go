package renderer

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTheGuideHasTheBoundsOfRendering(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../../templates/guides/reference-rendering.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	pool := NewPool(nil, PoolOptions{})
	for _, row := range []string{
		fmt.Sprintf("| time of one rendering | %d seconds;", pool.options.Time/time.Second),
		fmt.Sprintf("| memory of one rendering | %d MiB |", pool.options.Memory>>20),
		fmt.Sprintf("| all files of an artifact | %d MiB |", maxTreeBytes>>20),
		fmt.Sprintf("| each file of a chart | %d MiB,", maxChartFile>>20),
		fmt.Sprintf("| final objects of one assignment | %d MiB |", maxOutput>>20),
	} {
		if !strings.Contains(string(guide), "\n"+row) {
			t.Errorf("the guide has no row %q", row)
		}
	}
}
