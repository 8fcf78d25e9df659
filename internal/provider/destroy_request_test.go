package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestADestroyInAPullRequestSaysThatFoldersStay(t *testing.T) {
	t.Parallel()
	const summary = "Folders stay until the request is merged"
	l := newBranchLife(t)
	for _, test := range []struct {
		delivery map[string]any
		warns    bool
	}{{nil, false}, {requestDelivery(), true}} {
		configuration := l.configuration("dev", "one", nil)
		if _, diags := l.w.Apply(t.Context(), configuration); diags.Err() != nil {
			t.Fatal(diags)
		}
		configuration = l.configuration("dev", "one", test.delivery)
		if _, diags := l.w.Apply(t.Context(), configuration); diags.Err() != nil {
			t.Fatal(diags)
		}
		plan, diags := l.w.Plan(t.Context(), configuration, providertest.Destroy())
		if got := strings.Contains(diags.String(), summary); diags.Err() != nil || got != test.warns {
			t.Errorf("with delivery %v, the plan warns: %v; %s", test.delivery, got, diags)
		}
		if diags := l.w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
			t.Fatal(diags)
		}
	}
	if len(l.openRequests()) != 1 {
		t.Errorf("the open requests are %v", l.openRequests())
	}
}
