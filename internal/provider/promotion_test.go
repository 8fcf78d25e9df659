package provider_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const promotion = "flotilla_promotion.test"

func promotionConfig(attributes map[string]any) providertest.Configuration {
	return providertest.Configuration{Resources: map[string]providertest.Resource{promotion: {Attributes: attributes}}}
}

// applyPromotion applies, twice if the candidate is new, expects an empty plan, and returns the attributes in the state. No plan
// promotes a new candidate at once.
func applyPromotion(t *testing.T, w *providertest.Workspace, attributes map[string]any) map[string]any {
	t.Helper()
	plan := apply(t, w, promotionConfig(attributes))
	if before, after := plan.Change(promotion).Before, plan.Change(promotion).After; attributes["pin"] == nil &&
		!reflect.DeepEqual(before["candidate"], after["candidate"]) {
		if !reflect.DeepEqual(before["promoted"], after["promoted"]) {
			t.Errorf("the new candidate %v is promoted at once", after["promoted"])
		}
		if after["waiting_for"] == "the next plan, since the candidate is new" {
			plan = apply(t, w, promotionConfig(attributes))
		}
	}
	again, diags := w.Plan(t.Context(), promotionConfig(attributes))
	if diags.Err() != nil || !again.Empty() {
		t.Fatalf("the next plan is not empty: %v, %v", diags.Err(), again.Change(promotion).After)
	}
	if change := plan.Change(promotion); change.Action == providertest.NoOp {
		return change.Before
	} else if !reflect.DeepEqual(change.After, again.Change(promotion).Before) {
		t.Errorf("planned %v, but the state has %v", change.After, again.Change(promotion).Before)
	}
	return again.Change(promotion).Before
}

func TestPromotionReleasesProvenCandidates(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	for i, step := range []struct {
		attributes map[string]any
		promoted   any
		waits      any
	}{
		{map[string]any{"candidate": "a", "open": false}, nil, "the gate to open"},
		{map[string]any{"candidate": "a", "open": true, "now": "2026-01-01T00:00:00Z"}, "a", nil},
		{map[string]any{"candidate": "a", "open": false, "now": "2026-01-01T01:00:00Z"}, "a", nil}, // a closed gate keeps the value
		{map[string]any{"candidate": "b", "open": false, "now": "2026-01-01T02:00:00Z"}, "a", "the gate to open"},
		{map[string]any{"candidate": "b", "open": true, "soak": "1h", "now": "2026-01-01T03:00:00Z"}, "a", "the soak time, not before 2026-01-01 04:00 UTC"},
		{map[string]any{"candidate": "b", "open": false, "soak": "1h", "now": "2026-01-01T03:30:00Z"}, "a", "the gate to open"}, // interrupts the soak time
		{map[string]any{"candidate": "b", "open": true, "soak": "1h", "now": "2026-01-01T04:00:00Z"}, "a", "the soak time, not before 2026-01-01 05:00 UTC"},
		{map[string]any{"candidate": "b", "open": true, "soak": "1h", "now": "2026-01-01T05:00:00Z"}, "b", nil},
		{map[string]any{"candidate": "c", "open": true, "soak": "1h", "now": "2026-01-01T05:30:00Z"}, "b", "the soak time, not before 2026-01-01 06:30 UTC"}, // a new candidate starts again
		{map[string]any{"candidate": "c", "open": true, "soak": "1h", "hold": true, "now": "2026-01-01T07:00:00Z"}, "b", "the end of hold"},
		{map[string]any{"candidate": "c", "open": true, "soak": "1h", "pin": "a", "now": "2026-01-01T07:00:00Z"}, "a", "the end of pin"},
		{map[string]any{"candidate": "c", "open": true, "now": "2026-01-01T08:00:00Z"}, "c", nil},
	} {
		state := applyPromotion(t, w, step.attributes)
		if state["promoted"] != step.promoted || state["waiting_for"] != step.waits {
			t.Errorf("step %d: got %v waiting for %v, want %v and %v", i, state["promoted"], state["waiting_for"], step.promoted, step.waits)
		}
		if state["now"] != nil {
			t.Errorf("step %d: now is in the state", i)
		}
	}
	if previous := w.State; len(previous) != 1 {
		t.Error(previous)
	}
}

func TestPromotionTakesAnyTypeOfValue(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][2]any{
		"text":    {"a", "b"},
		"number":  {1, 2},
		"bool":    {true, false},
		"list":    {[]any{"a"}, []any{"a", 1}},
		"object":  {map[string]any{"web": "1.0", "api": "2.0"}, map[string]any{"web": "1.1", "api": map[string]any{"chart": "x"}}},
		"another": {"a", map[string]any{"commit": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := providertest.New(startProvider)
			first := applyPromotion(t, w, map[string]any{"candidate": values[0], "open": true})
			waiting := applyPromotion(t, w, map[string]any{"candidate": values[1], "open": false})
			if !reflect.DeepEqual(waiting["promoted"], first["candidate"]) {
				t.Errorf("got %v promoted while %v waits, want %v", waiting["promoted"], values[1], first["candidate"])
			}
			second := applyPromotion(t, w, map[string]any{"candidate": values[1], "open": true})
			if !reflect.DeepEqual(second["promoted"], second["candidate"]) || !reflect.DeepEqual(second["previous"], first["promoted"]) {
				t.Errorf("got promoted %v, previous %v", second["promoted"], second["previous"])
			}
		})
	}
}

func TestPromotionWithoutACandidateKeepsItsValue(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	none := map[string]any{"candidate": nil}
	if state := applyPromotion(t, w, none); state["promoted"] != nil || state["waiting_for"] != "a candidate" {
		t.Errorf("at first: %v", state)
	}
	if state := applyPromotion(t, w, map[string]any{"candidate": "a"}); state["promoted"] != "a" { // open defaults to true
		t.Errorf("with a candidate: %v", state)
	}
	if state := applyPromotion(t, w, none); state["promoted"] != "a" || state["waiting_for"] != "a candidate" {
		t.Errorf("without the candidate again: %v", state)
	}
}

func TestPromotionThatWaitsHasAnEmptyPlanAtAnyTime(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	attributes := map[string]any{"candidate": "a", "open": true, "soak": "24h", "now": "2026-01-01T00:00:00Z"}
	applyPromotion(t, w, attributes)
	later := maps.Clone(attributes)
	later["now"] = "2026-01-01T23:59:59Z"
	if plan := apply(t, w, promotionConfig(later)); !plan.Empty() {
		t.Errorf("a later time causes a change: %v", plan.Change(promotion).After)
	}
}

func TestPromotionIsPlannedFromKnownValues(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	applyPromotion(t, w, map[string]any{"candidate": "a", "open": true})
	plan := func(attributes map[string]any) map[string]any {
		t.Helper()
		plan, diags := w.Plan(t.Context(), promotionConfig(attributes))
		if diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		return plan.Change(promotion).After
	}
	unknown := providertest.Unknown{}
	if after := plan(map[string]any{"candidate": unknown}); after["promoted"] != "a" || after["waiting_for"] != unknown {
		t.Errorf("unknown candidate: got promoted %v, want a", after["promoted"])
	}
	if after := plan(map[string]any{"candidate": "b", "open": unknown}); after["promoted"] != "a" || after["waiting_for"] != unknown {
		t.Errorf("new candidate, unknown gate: got promoted %v, want a", after["promoted"])
	}
	applyPromotion(t, w, map[string]any{"candidate": "b", "open": false})
	if after := plan(map[string]any{"candidate": unknown, "open": false}); after["promoted"] != "a" {
		t.Errorf("unknown candidate, closed gate: got promoted %v, want a", after["promoted"])
	}
	if after := plan(map[string]any{"candidate": unknown, "open": true, "hold": true}); after["promoted"] != "a" {
		t.Errorf("unknown candidate, hold: got promoted %v, want a", after["promoted"])
	}
	for name, attributes := range map[string]map[string]any{
		"candidate": {"candidate": unknown, "open": true},
		"open":      {"candidate": "b", "open": unknown},
		"now":       {"candidate": "b", "open": true, "soak": "1h", "now": unknown},
		"pin":       {"candidate": "b", "open": false, "pin": unknown},
	} {
		if after := plan(attributes); after["promoted"] != unknown {
			t.Errorf("unknown %s: got promoted %v, want unknown", name, after["promoted"])
		}
	}
}

func TestPromotionNeedsAnApprovalOfItsContent(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	attributes := map[string]any{"candidate": map[string]any{"web": "1.1"}, "open": true, "approval": true}
	waits, _ := applyPromotion(t, w, attributes)["waiting_for"].(string)
	name, ok := strings.CutPrefix(waits, "an approval: ")
	if !ok {
		t.Fatalf("got waiting_for %q, want an approval", waits)
	}
	attributes["approvals"] = []any{strings.Trim(name, `"`)}
	if state := applyPromotion(t, w, attributes); state["waiting_for"] != nil || state["promoted"] == nil {
		t.Errorf("the approved candidate is not promoted: %v", state)
	}
	attributes["candidate"] = map[string]any{"web": "1.2"}
	if state := applyPromotion(t, w, attributes); state["waiting_for"] == nil {
		t.Error("the approval applies to another content")
	}
}

func TestPromotionOfBadInputIsAnErrorAtItsAttribute(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		attributes map[string]any
		at, want   string
	}{
		"soak":        {map[string]any{"soak": "a day"}, "soak", "is not a duration"},
		"negative":    {map[string]any{"soak": "-1h", "now": "2026-01-01T00:00:00Z"}, "soak", "is negative"},
		"now":         {map[string]any{"now": "yesterday"}, "now", "is not a time"},
		"no now":      {map[string]any{"soak": "1h"}, "now", "is required with soak and windows"},
		"windows":     {map[string]any{"now": "2026-01-01T00:00:00Z", "windows": []any{map[string]any{"kind": "allow", "schedule": "0 0 30 2 *", "duration": "1h"}}}, "windows", "names a date that does not exist"},
		"misspelt":    {map[string]any{"now": "2026-01-01T00:00:00Z", "windows": []any{map[string]any{"kind": "allow", "scedule": "0 0 * * *", "duration": "1h"}}}, "windows", `did you mean "schedule"?`},
		"pin or hold": {map[string]any{"pin": "a", "hold": true}, "hold", "cannot be set together with pin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes := map[string]any{"candidate": "a", "open": true}
			maps.Copy(attributes, test.attributes)
			_, diags := providertest.New(startProvider).Plan(t.Context(), promotionConfig(attributes))
			if diags.Err() == nil || !strings.Contains(diags.Err().Error(), test.want) || !strings.Contains(diags.Err().Error(), test.at) {
				t.Errorf("got %v, want %q at %s", diags.Err(), test.want, test.at)
			}
		})
	}
}

func TestPromotionIsImportedWithItsValue(t *testing.T) {
	t.Parallel()
	w := providertest.New(startProvider)
	configuration := promotionConfig(map[string]any{"candidate": "b", "open": false})
	if diags := w.Import(t.Context(), configuration, promotion, `"a"`); diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	if state := applyPromotion(t, w, map[string]any{"candidate": "b", "open": false}); state["promoted"] != "a" {
		t.Errorf("got promoted %v, want a", state["promoted"])
	}
	if diags := providertest.New(startProvider).Import(t.Context(), configuration, promotion, `a`); diags.Err() == nil {
		t.Error("an import of invalid JSON succeeds")
	}
}
