package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// An unknown value may become valid. The apply checks it.
func TestUnknownAdoptOnDestroyAndProtectionStopNoPlan(t *testing.T) {
	t.Parallel()
	url := bare(t)
	other := providertest.New(startProvider)
	apply(t, other, assigned(url, fleetOf(nil), map[string]any{"name": "other"}))

	w := providertest.New(startProvider)
	if _, diags := w.Plan(t.Context(), assigned(url, fleetOf(nil), nil)); !diags.Has("Folder does not belong to this assignment") {
		t.Fatalf("without adopt: got %s", diags)
	}
	if _, diags := w.Plan(t.Context(), assigned(url, fleetOf(nil), map[string]any{"adopt": providertest.Unknown{}})); diags.Err() != nil ||
		!diags.Has("Folders are taken over") {
		t.Errorf("adopt: %s", diags)
	}

	emptyFleet := fleetOf(map[string]any{"target_policies": []any{}})
	for name, further := range map[string]map[string]any{
		"protection":           {"protection": providertest.Unknown{}},
		"a part of protection": {"protection": map[string]any{"allow_empty": providertest.Unknown{}}},
	} {
		if _, diags := other.Plan(t.Context(), assigned(url, emptyFleet, map[string]any{"name": "other"})); diags.Err() == nil {
			t.Fatal("protection allows a fleet without assignments")
		}
		further["name"] = "other"
		if _, diags := other.Plan(t.Context(), assigned(url, emptyFleet, further)); diags.Err() != nil {
			t.Errorf("%s: %s", name, diags)
		}
	}

	elsewhere := bare(t)
	attributes := map[string]any{"name": "other", "protection": map[string]any{"max_removed": 0}}
	if _, diags := other.Plan(t.Context(), assigned(elsewhere, fleetOf(nil), attributes)); diags.Err() == nil {
		t.Fatal("protection allows a move")
	}
	attributes["on_destroy"] = providertest.Unknown{}
	plan, diags := other.Plan(t.Context(), assigned(elsewhere, fleetOf(nil), attributes))
	if diags.Err() != nil || plan.Change(assignment).After["changes"] != (providertest.Unknown{}) {
		t.Errorf("on_destroy: %s", diags)
	}
}

func TestAMisspeltHostAndALineBreakAreReported(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	_, diags := w.Plan(
		t.Context(),
		assigned(url, fleetOf(nil), map[string]any{"protection": map[string]any{"emptied_hosts": []any{"larg", "drone"}}}),
	)
	if diags.Err() != nil || strings.Count(diags.String(), "A host of emptied_hosts does not exist") != 1 ||
		!strings.Contains(diags.String(), `has a host "larg"; did you mean "large"?`) {
		t.Errorf("emptied_hosts: %s", diags)
	}
	if _, diags := w.Plan(t.Context(), assigned(url, fleetOf(nil), map[string]any{"commit_message": "one\ntwo"})); !diags.Has(
		"Invalid commit_message",
	) {
		t.Errorf("commit_message: %s", diags)
	}
}
