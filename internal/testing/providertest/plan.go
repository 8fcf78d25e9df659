package providertest

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Action is the planned action for an object, as in Terraform's JSON.
type Action string

// The actions.
const (
	NoOp             Action = "no-op"
	Create           Action = "create"
	Update           Action = "update"
	Delete           Action = "delete"
	DeleteThenCreate Action = "delete, create"
	CreateThenDelete Action = "create, delete"
	Forget           Action = "forget" // removal from the state only
)

// Replaces reports whether the action replaces the object.
func (a Action) Replaces() bool { return a == DeleteThenCreate || a == CreateThenDelete }

// Change is the planned change of an object.
type Change struct {
	Address string
	Action  Action

	Deposed bool // change of a deposed object
	// Before and After are the object, or nil. Unknown values are Unknown{}.
	Before, After map[string]any

	before, after tftypes.Value
	private       []byte
	deposed       *Object // for a deposed one
	createsFirst  bool    // create_before_destroy
}

func (c *Change) plain() *Change {
	c.Before, _ = FromValue(c.before).(map[string]any)
	c.After, _ = FromValue(c.after).(map[string]any)
	c.Deposed = c.deposed != nil
	return c
}

// Plan starts from the refreshed state.
type Plan struct {
	Changes       []*Change // by address
	Configuration Configuration
	// ExitCode is the result of `plan -detailed-exitcode`: 2 with changes, else 0. In a refresh-only plan, a changed object or
	// private state counts.
	ExitCode int
	Drifted  []string // in a refresh-only plan; with Terraform, by attributes only

	refreshed State
	file      string // of Terraform
}

// Empty reports whether the plan has no changes.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.Changes, func(change *Change) bool { return change.Action != NoOp })
}

// Change returns the change of a resource's current object, or nil.
func (p *Plan) Change(address string) *Change {
	for _, change := range p.Changes {
		if change.Address == address && !change.Deposed {
			return change
		}
	}
	return nil
}

// Refreshed returns the refreshed state.
func (p *Plan) Refreshed() State { return p.refreshed.Clone() }

type options struct {
	destroy, skipRefresh, refreshOnly bool
	inOneCommand                      bool
	replace, targets, removed         []string
	imports, moved                    map[string]string
}

func newOptions(choices []Option) options {
	opts := options{imports: map[string]string{}, moved: map[string]string{}}
	for _, option := range choices {
		option(&opts)
	}
	return opts
}

// Option is an option of a plan.
type Option func(*options)

// Destroy is -destroy.
func Destroy() Option { return func(o *options) { o.destroy = true } }

// Replace is -replace.
func Replace(addresses ...string) Option {
	return func(o *options) { o.replace = append(o.replace, addresses...) }
}

// SkipRefresh is -refresh=false.
func SkipRefresh() Option { return func(o *options) { o.skipRefresh = true } }

// RefreshOnly is -refresh-only.
func RefreshOnly() Option { return func(o *options) { o.refreshOnly = true } }

// InOneCommand makes Apply of a real tool run one command, in a third of the time. Its plan has no changes.
func InOneCommand() Option { return func(o *options) { o.inOneCommand = true } }

// Target is -target.
func Target(addresses ...string) Option {
	return func(o *options) { o.targets = append(o.targets, addresses...) }
}

// ImportBlock is a block `import { to, id }`.
func ImportBlock(address, id string) Option {
	return func(o *options) { o.imports[address] = id }
}

// MovedBlock is a block `moved { from, to }`.
func MovedBlock(from, to string) Option {
	return func(o *options) { o.moved[from] = to }
}

// RemovedBlock is a block `removed { from }` that destroys nothing.
func RemovedBlock(address string) Option {
	return func(o *options) { o.removed = append(o.removed, address) }
}

// Plan refreshes the state and plans.
func (w *Workspace) Plan(ctx context.Context, configuration Configuration, choices ...Option) (*Plan, Diagnostics) {
	opts := newOptions(choices)
	configuration, diags := w.read(ctx, configuration, opts)
	if diags.Err() != nil {
		return nil, diags
	}
	from := w.State.move(opts.moved)
	if opts.destroy && !opts.skipRefresh && len(w.State) > 0 {
		// Core makes a normal plan for a refreshed state. Its errors end the destroy, and its warnings are not shown.
		refreshing := opts
		refreshing.destroy = false
		plan, diags := w.planAll(ctx, configuration, from, refreshing)
		if diags.Err() != nil {
			return nil, diags
		}
		from = plan.refreshed
	}
	plan, more := w.planAll(ctx, configuration, from, opts)
	return plan, append(diags, more...)
}

func (w *Workspace) planAll(ctx context.Context, configuration Configuration, from State, opts options) (*Plan, Diagnostics) {
	configs, diags := w.validate(ctx, configuration)
	if diags.Err() != nil {
		return nil, diags
	}
	p, diags := w.startConfigured(ctx, configuration, false)
	if diags.Err() != nil {
		return nil, diags
	}
	p.configs, p.refreshesOrphans = configs, w.RefreshesOrphans
	plan := &Plan{Configuration: configuration, refreshed: from.Clone()}
	changes := map[string][]*Change{}
	var mu sync.Mutex
	addresses := union(from, configuration.Resources)
	if opts.targets != nil {
		addresses = opts.targets
	}
	diags = append(diags, runSteps(w.Order, addresses, func(address string) Diagnostics {
		if opts.refreshOnly {
			was, diags := p.current(ctx, address, from[address].Current, true) // as a newer provider reads it
			now, more := p.current(ctx, address, from[address].Current, false)
			mu.Lock()
			defer mu.Unlock()
			if !reflect.DeepEqual(was.object, now.object) {
				plan.Drifted = append(plan.Drifted, address)
			}
			plan.refreshed.setCurrent(address, now.object)
			return append(diags, more...)
		}
		planned, instance, diags := p.planInstance(ctx, configuration, address, from[address], opts)
		mu.Lock()
		defer mu.Unlock()
		changes[address] = planned
		plan.refreshed.set(address, instance)
		return diags
	})...)
	for _, address := range names(changes) {
		for _, change := range changes[address] {
			plan.Changes = append(plan.Changes, change.plain())
		}
	}
	if diags.Err() != nil {
		return nil, diags
	}
	if !plan.Empty() || len(opts.moved) > 0 || len(opts.imports) > 0 || len(plan.Drifted) > 0 {
		plan.ExitCode = 2
	}
	return plan, diags
}

// planInstance refreshes and plans all objects of a resource, and returns its new state.
func (p *process) planInstance(
	ctx context.Context, configuration Configuration, address string, instance Instance, opts options,
) (changes []*Change, refreshed Instance, diags Diagnostics) {
	refreshed = instance
	refreshed.Deposed = nil
	for _, deposed := range instance.Deposed {
		object, change, more := p.planGone(ctx, address, deposed, opts, false)
		if diags = append(diags, more...); object != nil {
			refreshed.Deposed = append(refreshed.Deposed, object)
		} else if more.Err() == nil {
			change, object = &Change{Address: address, Action: NoOp}, deposed
		}
		if change != nil {
			change.deposed = object
			changes = append(changes, change)
		}
	}
	resource, configured := configuration.Resources[address]
	if !opts.destroy && !configured && slices.Contains(opts.removed, address) {
		object, diags := p.current(ctx, address, instance.Current, opts.skipRefresh)
		refreshed.Current = object.object
		return append(
			changes,
			&Change{Address: address, Action: Forget, before: object.value, after: tftypes.NewValue(object.value.Type(), nil)},
		), refreshed, diags
	}
	if opts.destroy || !configured {
		object, change, more := p.planGone(ctx, address, instance.Current, opts, !p.refreshesOrphans)
		refreshed.Current = object
		if change != nil {
			changes = append(changes, change)
		}
		return changes, refreshed, append(diags, more...)
	}
	var found refreshedObject
	var more Diagnostics
	if id, imports := opts.imports[address]; imports && instance.Current == nil {
		found.value, found.private, more = p.importObject(ctx, address, byID(id), false)
		if more.Err() == nil {
			found.object, more = p.encoded(address, found.value, found.private, nil, more)
		}
	} else {
		found, more = p.current(ctx, address, instance.Current, opts.skipRefresh)
	}
	diags = append(diags, more...)
	if found.object != nil {
		stays := *found.object
		stays.CreateBeforeDestroy = resource.CreateBeforeDestroy
		found.object = &stays
	}
	refreshed.Current = found.object
	if more.Err() != nil {
		return changes, refreshed, diags
	}
	change, more := p.plan(ctx, address, resource, found, nil, slices.Contains(opts.replace, address))
	if change != nil {
		changes = append(changes, change)
	}
	return changes, refreshed, append(diags, more...)
}

type refreshedObject struct {
	value   tftypes.Value // null without an object
	private []byte        // kept if the refresh finds no object
	object  *Object       // the object in the state
}

// planGone refreshes an object and plans its destruction. With fromState it plans before the refresh, which can only drop the change.
func (p *process) planGone(
	ctx context.Context,
	address string,
	object *Object,
	opts options,
	fromState bool,
) (*Object, *Change, Diagnostics) {
	now, diags := p.current(ctx, address, object, fromState || opts.skipRefresh || opts.destroy)
	if diags.Err() != nil || now.object == nil {
		return now.object, nil, diags
	}
	change, more := p.planDestroy(ctx, address, now.value, now.private)
	if diags = append(diags, more...); diags.Err() != nil || !fromState || opts.skipRefresh || opts.destroy {
		return now.object, change, diags
	}
	now, more = p.current(ctx, address, object, false)
	if now.object == nil {
		change = nil
	}
	return now.object, change, append(diags, more...)
}

func (p *process) planDestroy(ctx context.Context, address string, value tftypes.Value, prior []byte) (*Change, Diagnostics) {
	schema := p.schema.ResourceSchemas[typeOf(address)]
	null := tftypes.NewValue(schema.ValueType(), nil)
	planned, private, _, diags := p.requestPlan(ctx, address, schema, value, null, null, prior)
	if diags.Err() != nil {
		return nil, diags
	}
	if !planned.IsNull() {
		return nil, append(diags, core(address, "Provider produced invalid plan", "The provider planned a non-null destroy value.")...)
	}
	return &Change{Address: address, Action: Delete, before: value, after: null, private: private}, diags
}

// plan plans an object. earlier is the saved plan at apply.
func (p *process) plan(
	ctx context.Context, address string, resource Resource, found refreshedObject, earlier *Change, replace bool,
) (*Change, Diagnostics) {
	schema, problems := p.resource(address)
	if problems != nil {
		return nil, problems
	}
	config, isDecoded := p.configs[address]
	if !isDecoded {
		if config, problems = p.decode(ctx, schema.Block, resource.Attributes); len(problems) > 0 {
			return nil, problems.at(address)
		}
	}
	null := tftypes.NewValue(schema.ValueType(), nil)
	prior, private := found.value, found.private
	tainted := found.object != nil && found.object.Tainted
	if tainted {
		prior, private = null, nil
	}
	diags := p.validate(ctx, address, schema, config)
	if diags.Err() != nil {
		return nil, diags
	}
	planned, plannedPrivate, requires, more := p.requestPlan(ctx, address, schema, prior, config, propose(schema.Block, prior, config), private)
	if diags = append(diags, more...); diags.Err() != nil {
		return nil, diags
	}
	invalid := checkWriteOnly(schema.Block, planned)
	if len(invalid) == 0 {
		invalid = checkPlan(schema.Block, prior, config, planned)
	}
	if len(invalid) > 0 {
		return nil, append(diags, bugs(address, "Provider produced invalid plan", invalid)...)
	}
	change := &Change{Address: address, before: prior, after: planned, private: plannedPrivate, createsFirst: resource.CreateBeforeDestroy}
	replacing := DeleteThenCreate
	if resource.CreateBeforeDestroy {
		replacing = CreateThenDelete
	}
	if earlier != nil && earlier.Action.Replaces() {
		replacing = earlier.Action
	}
	switch {
	case prior.IsNull():
		change.Action = Create
	case replace || requiresReplace(schema.Block, prior, planned, requires):
		change.Action = replacing
	case same(prior, planned):
		change.Action = NoOp
	default:
		change.Action = Update
	}
	if change.Action.Replaces() {
		// A new object starts from nothing, with the private bytes of the first plan.
		change.after, change.private, _, more = p.requestPlan(
			ctx,
			address,
			schema,
			null,
			config,
			propose(schema.Block, null, config),
			plannedPrivate,
		)
		if more.Err() != nil {
			return nil, append(diags, more...)
		}
		if invalid = checkWriteOnly(schema.Block, change.after); len(invalid) > 0 {
			return nil, append(diags, bugs(address, "Provider produced invalid plan", invalid)...)
		}
	}
	switch {
	case change.Action == Create && tainted:
		change.Action, change.before = replacing, found.value
	case change.Action == Create && earlier != nil && earlier.Action.Replaces():
		change.Action, change.before = earlier.Action, earlier.before // the old object no longer exists
	}
	return change, diags
}

func (p *process) validate(ctx context.Context, address string, schema *tfprotov6.Schema, config tftypes.Value) Diagnostics {
	value, err := tfprotov6.NewDynamicValue(schema.ValueType(), config)
	if err != nil {
		return protocolError(address, err)
	}
	diags, err := p.answers.validate(typeOf(address), &value, func() ([]*tfprotov6.Diagnostic, error) {
		response, err := p.server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
			TypeName: typeOf(address), Config: &value,
			ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
		})
		if err != nil {
			return nil, err
		}
		return response.Diagnostics, nil
	})
	if err != nil {
		return protocolError(address, err)
	}
	return fromProtocol(address, diags)
}

func (p *process) requestPlan(
	ctx context.Context, address string, schema *tfprotov6.Schema, prior, config, proposed tftypes.Value, private []byte,
) (planned tftypes.Value, plannedPrivate []byte, requires []*tftypes.AttributePath, diags Diagnostics) {
	var values [3]tfprotov6.DynamicValue
	for i, value := range []tftypes.Value{prior, config, proposed} {
		encoded, err := tfprotov6.NewDynamicValue(schema.ValueType(), value)
		if err != nil {
			return tftypes.Value{}, nil, nil, protocolError(address, err)
		}
		values[i] = encoded
	}
	response, err := p.server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: typeOf(address), PriorState: &values[0], Config: &values[1], ProposedNewState: &values[2], PriorPrivate: private,
	})
	if err != nil {
		return tftypes.Value{}, nil, nil, protocolError(address, err)
	}
	if diags = fromProtocol(address, response.Diagnostics); diags.Err() != nil {
		return tftypes.Value{}, nil, nil, diags
	}
	if planned, err = response.PlannedState.Unmarshal(schema.ValueType()); err != nil {
		return tftypes.Value{}, nil, nil, append(diags, protocolError(address, err)...)
	}
	return planned, bytes.Clone(response.PlannedPrivate), response.RequiresReplace, diags
}

// requiresReplace reports whether an attribute of requires changes.
func requiresReplace(schema *tfprotov6.SchemaBlock, prior, planned tftypes.Value, requires []*tftypes.AttributePath) bool {
	for _, at := range requires {
		was, _, err := tftypes.WalkAttributePath(prior, at)
		is, _, errPlanned := tftypes.WalkAttributePath(planned, at)
		before, _ := was.(tftypes.Value)
		after, _ := is.(tftypes.Value)
		if (err != nil) != (errPlanned != nil) || err == nil && !same(before, after) || isWriteOnly(schema, at) {
			return true
		}
	}
	return false
}

func isWriteOnly(schema *tfprotov6.SchemaBlock, at *tftypes.AttributePath) bool {
	steps := at.Steps()
	return len(steps) == 1 && slices.ContainsFunc(schema.Attributes, func(attribute *tfprotov6.SchemaAttribute) bool {
		return attribute.WriteOnly && steps[0].Equal(tftypes.AttributeName(attribute.Name))
	})
}
