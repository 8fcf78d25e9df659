package providertest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const toyAddress = "toy_toy.one"

func TestApplyMakesThePlannedChanges(t *testing.T) {
	t.Parallel()
	toyBox := newToyBox()
	w := providertest.New(toyBox.start)
	for _, step := range []struct {
		attributes map[string]any
		byHand     func()
		options    []providertest.Option
		action     providertest.Action
		size       any
	}{
		{attributes: map[string]any{"name": "a", "size": "s", "secret": "x"}, action: providertest.Create, size: "s"},
		{attributes: map[string]any{"name": "a", "size": "s", "secret": "y"}, action: providertest.NoOp, size: "s"},
		{attributes: map[string]any{"name": "a", "size": "m"}, action: providertest.Update, size: "m"},
		{byHand: func() { toyBox.toys["a"] = "by hand" }, attributes: map[string]any{"name": "a", "size": "m"}, action: providertest.Update, size: "m"},
		{attributes: map[string]any{"name": "b", "size": "m"}, action: providertest.DeleteThenCreate, size: "m"},
		{attributes: map[string]any{"name": "b", "size": "m"}, options: []providertest.Option{providertest.Replace(toyAddress)}, action: providertest.DeleteThenCreate, size: "m"},
		{attributes: map[string]any{"name": "b", "size": "m"}, options: []providertest.Option{providertest.Destroy()}, action: providertest.Delete},
	} {
		if step.byHand != nil {
			step.byHand()
		}
		plan, diags := w.Apply(t.Context(), toyConfiguration(step.attributes), step.options...)
		if diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		if got := plan.Change(toyAddress).Action; got != step.action {
			t.Errorf("%v: got the action %q, want %q", step.attributes, got, step.action)
		}
		if got := w.State.Values(toyAddress)["size"]; got != step.size {
			t.Errorf("%v: got the size %v in the state, want %v", step.attributes, got, step.size)
		}
		if got := w.State.Values(toyAddress)["secret"]; got != nil {
			t.Errorf("%v: the state has the secret %v", step.attributes, got)
		}
	}
	if len(w.State) != 0 || len(toyBox.toys) != 0 {
		t.Errorf("after the destroy, the toys %v and the state %v remain", toyBox.toys, w.State)
	}
}

func TestUnknownValuesAreKnownAfterApply(t *testing.T) {
	t.Parallel()
	w := providertest.New(newToyBox().start)
	configuration := toyConfiguration(map[string]any{
		"name": "a", "size": providertest.Unknown{Then: "later"},
		"options": providertest.Call{Function: "wrap", Arguments: []any{map[string]any{"in": providertest.Unknown{Then: 1}}}},
	})
	plan, diags := w.Apply(t.Context(), configuration)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	after := plan.Change(toyAddress).After
	if after["size"] != (providertest.Unknown{}) || after["options"].(map[string]any)["inside"] != (providertest.Unknown{}) {
		t.Errorf("got the plan %v", after)
	}
	values := w.State.Values(toyAddress)
	if values["size"] != "later" || !strings.Contains(fmt.Sprint(values["options"]), "in") {
		t.Errorf("got the state %v", values)
	}
}

func TestBugsOfTheProviderAreFound(t *testing.T) {
	t.Parallel()
	for wrong, summary := range map[string]string{
		"plan size":      "Provider produced invalid plan",
		"plan differs":   "Provider produced inconsistent final plan",
		"plan secret":    "Provider produced invalid plan",
		"apply size":     "Provider produced inconsistent result after apply",
		"unknown serial": "Provider returned invalid result object after apply",
	} {
		w := providertest.New(newToyBox().start)
		_, diags := w.Apply(t.Context(), toyConfiguration(map[string]any{"name": "a", "size": "s", "secret": "x", "wrong": wrong}))
		if diags.Bugs() == nil || !diags.Has(summary) {
			t.Errorf("%s: got %s, want %s", wrong, diags, summary)
		}
	}
}

func TestErrorsHaveTheirAttribute(t *testing.T) {
	t.Parallel()
	w := providertest.New(newToyBox().start)
	if _, diags := w.Apply(t.Context(), toyConfiguration(map[string]any{"name": "a", "wrong": "refuse destroy"})); diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	_, diags := w.Plan(t.Context(), providertest.Configuration{})
	if len(diags) != 1 || !diags[0].Error || diags[0].At != `AttributeName("wrong")` || diags[0].Address != toyAddress || diags.Bugs() != nil {
		t.Errorf("got %s", diags)
	}
}

func TestResourcesAreAppliedAtOnceOrInOrder(t *testing.T) {
	t.Parallel()
	for _, order := range []func([]string) []string{nil, func(addresses []string) []string { slices.Reverse(addresses); return addresses }} {
		toyBox := newToyBox()
		w := providertest.New(toyBox.start)
		w.Order = order
		configuration := providertest.Configuration{Resources: map[string]providertest.Resource{}}
		for i := range 50 {
			configuration.Resources[fmt.Sprintf("toy_toy.n%02d", i)] = providertest.Resource{
				Attributes: map[string]any{"name": fmt.Sprintf("n%02d", i)},
			}
		}
		if _, diags := w.Apply(t.Context(), configuration); diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		if len(w.State) != 50 || len(toyBox.toys) != 50 {
			t.Errorf("got %d toys and %d resources in the state, want 50", len(toyBox.toys), len(w.State))
		}
		if order != nil && toyBox.events[0] != "create n49" {
			t.Errorf("the first event is %s, want create n49", toyBox.events[0])
		}
	}
}

func TestAStateOfAnEarlierSchemaIsUpgraded(t *testing.T) {
	t.Parallel()
	toyBox := newToyBox()
	toyBox.toys["upgraded"] = ""
	w := providertest.New(toyBox.start)
	state, err := providertest.ParseState([]byte(`{"resources": [
		{"mode": "data", "type": "toy_toy", "name": "data", "instances": [{"attributes": {}}]},
		{"mode": "managed", "type": "toy_toy", "name": "one", "instances": [{"schema_version": 0, "attributes": {"title": "old"}}]}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	w.State = state
	plan, diags := w.Apply(t.Context(), toyConfiguration(map[string]any{"name": "upgraded"}))
	if diags.Err() != nil || plan.Change(toyAddress).Action != providertest.Update && plan.Change(toyAddress).Action != providertest.NoOp {
		t.Errorf("got the plan %v: %s", plan, diags)
	}
	w.State[toyAddress] = providertest.Instance{Current: &providertest.Object{SchemaVersion: 2, Attributes: []byte("{}")}}
	if _, diags := w.Plan(t.Context(), toyConfiguration(map[string]any{"name": "upgraded"})); !diags.Has(
		"Resource instance managed by newer provider version",
	) {
		t.Errorf("got %s", diags)
	}
}
