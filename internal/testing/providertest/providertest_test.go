package providertest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const one = "toy_toy.one"

func TestALifeMakesThePlannedChanges(t *testing.T) {
	t.Parallel()
	world := newWorld()
	w := providertest.New(world.start)
	for _, step := range []struct {
		attributes map[string]any
		hand       func()
		options    []providertest.Option
		action     providertest.Action
		size       any
	}{
		{attributes: map[string]any{"name": "a", "size": "s", "secret": "x"}, action: providertest.Create, size: "s"},
		{attributes: map[string]any{"name": "a", "size": "s", "secret": "y"}, action: providertest.NoOp, size: "s"},
		{attributes: map[string]any{"name": "a", "size": "m"}, action: providertest.Update, size: "m"},
		{hand: func() { world.toys["a"] = "by hand" }, attributes: map[string]any{"name": "a", "size": "m"}, action: providertest.Update, size: "m"},
		{attributes: map[string]any{"name": "b", "size": "m"}, action: providertest.DeleteThenCreate, size: "m"},
		{attributes: map[string]any{"name": "b", "size": "m"}, options: []providertest.Option{providertest.Replace(one)}, action: providertest.DeleteThenCreate, size: "m"},
		{attributes: map[string]any{"name": "b", "size": "m"}, options: []providertest.Option{providertest.Destroy()}, action: providertest.Delete},
	} {
		if step.hand != nil {
			step.hand()
		}
		plan, said := w.Apply(t.Context(), thing(step.attributes), step.options...)
		if said.Err() != nil {
			t.Fatal(said.Err())
		}
		if got := plan.Change(one).Action; got != step.action {
			t.Errorf("%v: the plan does %q, want %q", step.attributes, got, step.action)
		}
		if got := w.State.Values(one)["size"]; got != step.size {
			t.Errorf("%v: the size in the state is %v", step.attributes, got)
		}
		if got := w.State.Values(one)["secret"]; got != nil {
			t.Errorf("%v: the state has the secret %v", step.attributes, got)
		}
	}
	if len(w.State) != 0 || len(world.toys) != 0 {
		t.Errorf("after the destroy there is %v, and %v in the state", world.toys, w.State)
	}
}

func TestUnknownIsKnownWhenItIsApplied(t *testing.T) {
	t.Parallel()
	w := providertest.New(newWorld().start)
	configuration := thing(map[string]any{
		"name": "a", "size": providertest.Unknown{Then: "later"},
		"options": providertest.Call{Function: "wrap", Arguments: []any{map[string]any{"in": providertest.Unknown{Then: 1}}}},
	})
	plan, said := w.Apply(t.Context(), configuration)
	if said.Err() != nil {
		t.Fatal(said.Err())
	}
	after := plan.Change(one).After
	if after["size"] != (providertest.Unknown{}) || after["options"].(map[string]any)["inside"] != (providertest.Unknown{}) {
		t.Errorf("planned is %v", after)
	}
	values := w.State.Values(one)
	if values["size"] != "later" || !strings.Contains(fmt.Sprint(values["options"]), "in") {
		t.Errorf("the state has %v", values)
	}
}

func TestWhatCoreWouldCallABugOfTheProviderIsFound(t *testing.T) {
	t.Parallel()
	for wrong, summary := range map[string]string{
		"plan size":      "Provider produced invalid plan",
		"plan differs":   "Provider produced inconsistent final plan",
		"plan secret":    "Provider produced invalid plan",
		"apply size":     "Provider produced inconsistent result after apply",
		"unknown serial": "Provider returned invalid result object after apply",
	} {
		w := providertest.New(newWorld().start)
		_, said := w.Apply(t.Context(), thing(map[string]any{"name": "a", "size": "s", "secret": "x", "wrong": wrong}))
		if said.Bugs() == nil || !said.Has(summary) {
			t.Errorf("%s: said is %s", wrong, said)
		}
	}
}

func TestErrorsHaveTheirAttribute(t *testing.T) {
	t.Parallel()
	w := providertest.New(newWorld().start)
	if _, said := w.Apply(t.Context(), thing(map[string]any{"name": "a", "wrong": "refuse destroy"})); said.Err() != nil {
		t.Fatal(said.Err())
	}
	_, said := w.Plan(t.Context(), providertest.Configuration{})
	if len(said) != 1 || !said[0].Error || said[0].At != `AttributeName("wrong")` || said[0].Address != one || said.Bugs() != nil {
		t.Errorf("said is %s", said)
	}
}

func TestManyResourcesAtOnceOrInAnOrder(t *testing.T) {
	t.Parallel()
	for _, order := range []func([]string) []string{nil, func(addresses []string) []string { slices.Reverse(addresses); return addresses }} {
		world := newWorld()
		w := providertest.New(world.start)
		w.Order = order
		configuration := providertest.Configuration{Resources: map[string]providertest.Resource{}}
		for i := range 50 {
			configuration.Resources[fmt.Sprintf("toy_toy.n%02d", i)] = providertest.Resource{
				Attributes: map[string]any{"name": fmt.Sprintf("n%02d", i)},
			}
		}
		if _, said := w.Apply(t.Context(), configuration); said.Err() != nil {
			t.Fatal(said.Err())
		}
		if len(w.State) != 50 || len(world.toys) != 50 {
			t.Errorf("%d are made, and %d are in the state", len(world.toys), len(w.State))
		}
		if order != nil && world.events[0] != "create n49" {
			t.Errorf("first was %s", world.events[0])
		}
	}
}

func TestAStateOfAnEarlierSchemaIsUpgraded(t *testing.T) {
	t.Parallel()
	world := newWorld()
	world.toys["upgraded"] = ""
	w := providertest.New(world.start)
	state, err := providertest.ParseState([]byte(`{"resources": [
		{"mode": "data", "type": "toy_toy", "name": "data", "instances": [{"attributes": {}}]},
		{"mode": "managed", "type": "toy_toy", "name": "one", "instances": [{"schema_version": 0, "attributes": {"title": "old"}}]}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	w.State = state
	plan, said := w.Apply(t.Context(), thing(map[string]any{"name": "upgraded"}))
	if said.Err() != nil || plan.Change(one).Action != providertest.Update && plan.Change(one).Action != providertest.NoOp {
		t.Errorf("the plan is %v: %s", plan, said)
	}
	w.State[one] = providertest.Instance{Current: &providertest.Object{SchemaVersion: 2, Attributes: []byte("{}")}}
	if _, said := w.Plan(t.Context(), thing(map[string]any{"name": "upgraded"})); !said.Has(
		"Resource instance managed by newer provider version",
	) {
		t.Errorf("said is %s", said)
	}
}
