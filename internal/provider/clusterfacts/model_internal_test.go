package clusterfacts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// Rollouts refuse evidence of more than 64 MiB, so the data source reports an error.
func TestTooLargeFactsAreAnError(t *testing.T) {
	t.Parallel()
	properties := map[string]any{}
	for i := range 100 {
		properties[fmt.Sprint(i)] = strings.Repeat("x", 1000)
	}
	one := facts.KnownFacts{ClusterFacts: evidence.ClusterFacts{Facts: map[string]any{"properties": properties}}}
	known := map[string]facts.KnownFacts{}
	for _, test := range []struct {
		clusters int
		want     string
	}{
		{acceptancetest.Count(10, 600), ""},
		{700, "It would have 67 MiB, and 64 MiB are the most: ask fewer clusters."},
	} {
		for i := range test.clusters {
			known[fmt.Sprint(i)] = one
		}
		var diags diag.Diagnostics
		new(clusterFactsModel).set(time.Unix(1, 0), known, facts.Labels{}, &diags)
		if got := fmt.Sprint(diags.Errors()); !strings.Contains(got, test.want) || diags.HasError() != (test.want != "") {
			t.Errorf("%d clusters: %s, want %s", test.clusters, got, test.want)
		}
	}
}
