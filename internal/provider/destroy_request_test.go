package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// A destroy that proposes the removal says at plan that the folders stay until somebody merges the request.
func TestADestroyInAPullRequestSaysThatFoldersStay(t *testing.T) {
	t.Parallel()
	const summary = "Folders stay until the request is merged"
	l := newBranchLife(t)
	for _, test := range []struct {
		delivery map[string]any
		warns    bool
	}{{nil, false}, {requestDelivery(), true}} {
		configuration := l.configuration("dev", "one", nil)
		if _, said := l.w.Apply(t.Context(), configuration); said.Err() != nil {
			t.Fatal(said)
		}
		configuration = l.configuration("dev", "one", test.delivery)
		if _, said := l.w.Apply(t.Context(), configuration); said.Err() != nil {
			t.Fatal(said)
		}
		plan, said := l.w.Plan(t.Context(), configuration, providertest.Destroy())
		if got := strings.Contains(said.String(), summary); said.Err() != nil || got != test.warns {
			t.Errorf("with %v it warns: %v; %s", test.delivery, got, said)
		}
		if said := l.w.ApplyPlan(t.Context(), plan); said.Err() != nil {
			t.Fatal(said)
		}
	}
	if len(l.openRequests()) != 1 {
		t.Errorf("the open requests are %v", l.openRequests())
	}
}
