package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// What is not known yet may become anything, so that it stops no plan. The apply knows it.
func TestAdoptOnDestroyAndProtectionThatAreNotKnownYetStopNoPlan(t *testing.T) {
	t.Parallel()
	url := bare(t)
	other := providertest.New(startProvider)
	apply(t, other, assigned(url, fleetOf(nil), map[string]any{"name": "other"}))

	w := providertest.New(startProvider)
	if _, said := w.Plan(t.Context(), assigned(url, fleetOf(nil), nil)); !said.Has("Folder does not belong to this assignment") {
		t.Fatalf("without adopt it is said %s", said)
	}
	if _, said := w.Plan(t.Context(), assigned(url, fleetOf(nil), map[string]any{"adopt": providertest.Unknown{}})); said.Err() != nil ||
		!said.Has("Folders are taken over") {
		t.Errorf("adopt: %s", said)
	}

	none := fleetOf(map[string]any{"target_policies": []any{}})
	for name, further := range map[string]map[string]any{
		"protection":           {"protection": providertest.Unknown{}},
		"a part of protection": {"protection": map[string]any{"allow_empty": providertest.Unknown{}}},
	} {
		if _, said := other.Plan(t.Context(), assigned(url, none, map[string]any{"name": "other"})); said.Err() == nil {
			t.Fatal("a fleet that assigns nothing is not held")
		}
		further["name"] = "other"
		if _, said := other.Plan(t.Context(), assigned(url, none, further)); said.Err() != nil {
			t.Errorf("%s: %s", name, said)
		}
	}

	elsewhere := bare(t)
	moved := map[string]any{"name": "other", "protection": map[string]any{"max_removed": 0}}
	if _, said := other.Plan(t.Context(), assigned(elsewhere, fleetOf(nil), moved)); said.Err() == nil {
		t.Fatal("a move is not held")
	}
	moved["on_destroy"] = providertest.Unknown{}
	plan, said := other.Plan(t.Context(), assigned(elsewhere, fleetOf(nil), moved))
	if said.Err() != nil || plan.Change(assignment).After["changes"] != (providertest.Unknown{}) {
		t.Errorf("on_destroy: %s", said)
	}
}

func TestAMisspeltHostAndALineBreakAreReported(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	_, said := w.Plan(
		t.Context(),
		assigned(url, fleetOf(nil), map[string]any{"protection": map[string]any{"emptied_hosts": []any{"larg", "drone"}}}),
	)
	if said.Err() != nil || strings.Count(said.String(), "A host of emptied_hosts does not exist") != 1 ||
		!strings.Contains(said.String(), `has a host "larg"; did you mean "large"?`) {
		t.Errorf("emptied_hosts: %s", said)
	}
	if _, said := w.Plan(t.Context(), assigned(url, fleetOf(nil), map[string]any{"commit_message": "one\ntwo"})); !said.Has(
		"Invalid commit_message",
	) {
		t.Errorf("commit_message: %s", said)
	}
}
