package providertest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// ApplyPlan applies a plan in a new process. The state has all successful changes, even after errors.
func (w *Workspace) ApplyPlan(ctx context.Context, plan *Plan) Diagnostics {
	p, diags := w.startConfigured(ctx, plan.Configuration, true)
	if diags.Err() != nil {
		return diags
	}
	w.State = plan.refreshed.Clone()
	run := &applyRun{process: p, state: w.State}
	changes := map[string][]*Change{}
	for _, change := range plan.Changes {
		if change.Action != NoOp {
			changes[change.Address] = append(changes[change.Address], change)
		}
	}
	return append(diags, runSteps(w.Order, names(changes), func(address string) Diagnostics {
		var diags Diagnostics
		// Deposed objects follow current ones.
		slices.SortStableFunc(changes[address], func(a, b *Change) int {
			switch {
			case a.Deposed == b.Deposed:
				return 0
			case a.Deposed:
				return 1
			}
			return -1
		})
		for _, change := range changes[address] {
			diags = append(diags, run.apply(ctx, plan.Configuration.Resources[address], change)...)
		}
		return diags
	})...)
}

type applyRun struct {
	*process
	mu    sync.Mutex
	state State
}

func (a *applyRun) change(edit func(State)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	edit(a.state)
}

func (a *applyRun) stored(address string) *Object {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state[address].Current
}

func (a *applyRun) apply(ctx context.Context, resource Resource, change *Change) Diagnostics {
	address := change.Address
	switch {
	case change.Deposed:
		return a.destroyDeposed(ctx, address, change.deposed)
	case change.Action == Forget:
		a.change(func(state State) { delete(state, address) })
		return nil
	case change.Action == Delete:
		return a.destroy(ctx, change)
	case change.Action == DeleteThenCreate:
		// The destroying half follows its plan without another request.
		diags := a.destroy(ctx, change)
		if diags.Err() != nil {
			return diags
		}
		return append(diags, a.write(ctx, resource, change)...)
	case change.Action == CreateThenDelete:
		var deposed *Object
		a.change(func(state State) { deposed = state.depose(address) })
		diags := a.write(ctx, resource, change)
		if diags.Err() != nil {
			a.change(func(state State) { state.restore(address, deposed) })
			return diags
		}
		return append(diags, a.destroyDeposed(ctx, address, deposed)...)
	}
	return a.write(ctx, resource, change)
}

func (a *applyRun) destroy(ctx context.Context, change *Change) Diagnostics {
	object := a.stored(change.Address)
	if object == nil {
		return nil
	}
	destroying := *change
	destroying.Action = Delete
	destroying.after = tftypes.NewValue(change.before.Type(), nil)
	object, diags := a.request(ctx, &destroying, tftypes.NewValue(change.before.Type(), nil), object)
	a.change(func(state State) { state.setCurrent(change.Address, object) })
	return diags
}

func (a *applyRun) destroyDeposed(ctx context.Context, address string, deposed *Object) Diagnostics {
	value, diags := a.decodeObject(ctx, address, deposed)
	if diags.Err() != nil {
		return diags
	}
	change, more := a.planDestroy(ctx, address, value, deposed.Private)
	if diags = append(diags, more...); diags.Err() != nil {
		return diags
	}
	object, more := a.request(ctx, change, tftypes.NewValue(value.Type(), nil), deposed)
	a.change(func(state State) { state.setDeposed(address, deposed, object) })
	return append(diags, more...)
}

// write plans again with all values known, compares the plans, and creates or updates the object.
func (a *applyRun) write(ctx context.Context, resource Resource, planned *Change) Diagnostics {
	address := planned.Address
	object := a.stored(address)
	now, diags := a.current(ctx, address, object, true)
	if diags.Err() != nil {
		return diags
	}
	change, more := a.plan(ctx, address, resource, now, planned, false)
	if diags = append(diags, more...); diags.Err() != nil {
		return diags
	}
	var problems []error
	if change.Action != planned.Action && (planned.Action != Update || change.Action != NoOp) {
		problems = append(problems, fmt.Errorf("the planned action changed from %q to %q", planned.Action, change.Action))
	}
	problems = append(problems, checkCompletes(tftypes.NewAttributePath(), planned.after, change.after)...)
	if len(problems) > 0 {
		return append(diags, bugs(address, "Provider produced inconsistent final plan", problems)...)
	}
	if change.Action == NoOp {
		return diags
	}
	if change.Action.Replaces() {
		change.Action, change.before = Create, tftypes.NewValue(change.before.Type(), nil)
	}
	schema := a.schema.ResourceSchemas[typeOf(address)]
	config, wrong := a.decode(ctx, schema.Block, resource.Attributes)
	if len(wrong) > 0 {
		return append(diags, wrong.at(address)...)
	}
	written, more := a.request(ctx, change, config, object)
	if written != nil {
		written.CreateBeforeDestroy = change.createsFirst
		written.Tainted = written.Tainted || change.Action == Create && more.Err() != nil
	}
	a.change(func(state State) { state.setCurrent(address, written) })
	return append(diags, more...)
}

// request sends an ApplyResourceChange. It returns the new object, or nil if there is none.
func (a *applyRun) request(ctx context.Context, change *Change, config tftypes.Value, object *Object) (*Object, Diagnostics) {
	schema := a.schema.ResourceSchemas[typeOf(change.Address)]
	var values [3]tfprotov6.DynamicValue
	for i, value := range []tftypes.Value{change.before, change.after, config} {
		encoded, err := tfprotov6.NewDynamicValue(schema.ValueType(), value)
		if err != nil {
			return object, protocolError(change.Address, err)
		}
		values[i] = encoded
	}
	response, err := a.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: typeOf(change.Address), PriorState: &values[0], PlannedState: &values[1], Config: &values[2], PlannedPrivate: change.private,
	})
	if err != nil {
		return object, protocolError(change.Address, err)
	}
	diags := fromProtocol(change.Address, response.Diagnostics)
	value := change.before
	if response.NewState != nil {
		if value, err = response.NewState.Unmarshal(schema.ValueType()); err != nil {
			return object, append(diags, protocolError(change.Address, err)...)
		}
	}
	if problems := checkWriteOnly(schema.Block, value); len(problems) > 0 {
		return object, append(diags, bugs(change.Address, "Provider produced invalid object", problems)...)
	}
	value, problems := knownOnly(value)
	diags = append(diags, bugs(change.Address, "Provider returned invalid result object after apply", problems)...)
	if change.Action != Delete && diags.Err() == nil {
		problems := checkCompletes(tftypes.NewAttributePath(), change.after, value)
		diags = append(diags, bugs(change.Address, "Provider produced inconsistent result after apply", problems)...)
	}
	if diags.Err() == nil && (change.Action == Delete) != value.IsNull() {
		diags = append(diags, core(change.Address, "Provider returned invalid result object after apply",
			"An object that is destroyed must be null, and no other may be.")...)
	}
	if diags.Err() != nil && value.IsNull() {
		return object, diags
	}
	if !value.IsNull() && diags.Err() == nil {
		diags = append(diags, a.keepIdentity(change.Address, response.NewIdentity)...)
	}
	var like *Object
	if diags.Err() != nil && object != nil {
		like = &Object{Tainted: object.Tainted, CreateBeforeDestroy: object.CreateBeforeDestroy}
	}
	return a.encoded(change.Address, value, slices.Clone(response.Private), like, diags)
}

// knownOnly replaces values that are unknown after an apply, a bug, by null.
func knownOnly(value tftypes.Value) (tftypes.Value, []error) {
	var problems []error
	known, err := tftypes.Transform(value, func(at *tftypes.AttributePath, inner tftypes.Value) (tftypes.Value, error) {
		if inner.IsKnown() {
			return inner, nil
		}
		problems = append(problems, fmt.Errorf("%s is unknown after apply", at))
		return tftypes.NewValue(inner.Type(), nil), nil
	})
	must(err)
	return known, problems
}
