// Package providertest is a small stand-in for Terraform core. It drives a provider in the test's process by Terraform's
// protocol: tests need no Terraform, run under the race detector, and make thousands of plans and applies.
//
// It makes the same requests as core, in the same order, and finds the same bugs. It simulates one root module, managed resources without
// nested blocks and nested attributes, data sources, ephemeral resources, actions, lists and functions, and no expressions:
// configurations are Go values.
package providertest

import (
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Configuration is a root module.
type Configuration struct {
	Provider  map[string]any      // the provider's block
	Resources map[string]Resource // by address: "flotilla_assignment.dev"
}

// Resource has attributes of nil, bool, string, int, float64, json.Number, []any, map[string]any, Unknown, Call and Reading.
type Resource struct {
	Attributes          map[string]any
	CreateBeforeDestroy bool
}

// Reading is an attribute of a data source. The workspace reads data sources before it plans.
type Reading struct {
	DataSource string
	Attributes map[string]any
	Attribute  string
}

// Workspace is a working folder of Terraform: a provider and the state.
type Workspace struct {
	launcher
	State State
	// Order orders resources; nil is concurrent, as in Terraform.
	Order func(addresses []string) []string
	// RefreshesOrphans refreshes an object without configuration before planning its destruction, like OpenTofu and newer
	// versions of Terraform.
	RefreshesOrphans bool
}

// New returns a workspace with an empty state.
func New(start Start) *Workspace {
	return &Workspace{launcher: launcher{Start: start, answers: newAnswers()}, State: State{}}
}

const parallelism = 10

// runSteps runs a step for each resource, in order or, if order is nil, concurrently.
func runSteps(order func([]string) []string, addresses []string, step func(address string) Diagnostics) Diagnostics {
	all := make([]Diagnostics, len(addresses))
	if order != nil {
		addresses = order(addresses)
		for i, address := range addresses {
			all[i] = step(address)
		}
	} else {
		var group sync.WaitGroup
		slots := make(chan struct{}, parallelism)
		for i, address := range addresses {
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				all[i] = step(address)
			})
		}
		group.Wait()
	}
	var diags Diagnostics
	for _, diagnostics := range all {
		diags = append(diags, diagnostics...)
	}
	return diags
}

// Apply is `terraform apply -auto-approve`. The plan is nil if planning failed.
func (w *Workspace) Apply(ctx context.Context, configuration Configuration, options ...Option) (*Plan, Diagnostics) {
	plan, diags := w.Plan(ctx, configuration, options...)
	if diags.Err() != nil {
		return nil, diags
	}
	return plan, append(diags, w.ApplyPlan(ctx, plan)...)
}

// Import is `terraform import`.
func (w *Workspace) Import(ctx context.Context, configuration Configuration, address, id string) Diagnostics {
	return w.importBy(ctx, configuration, address, byID(id))
}

type importNaming func(*process, *tfprotov6.ImportResourceStateRequest) Diagnostics

func byID(id string) importNaming {
	return func(_ *process, request *tfprotov6.ImportResourceStateRequest) Diagnostics {
		request.ID = id
		return nil
	}
}

func (w *Workspace) importBy(ctx context.Context, configuration Configuration, address string, by importNaming) Diagnostics {
	p, diags := w.startConfigured(ctx, configuration, true)
	if diags.Err() != nil {
		return diags
	}
	_, exists := w.State[address]
	value, private, more := p.importObject(ctx, address, by, exists)
	if diags = append(diags, more...); diags.Err() != nil {
		return diags
	}
	object, err := p.encodeObject(address, value, private, nil)
	if err != nil {
		return append(diags, protocolError(address, err)...)
	}
	w.State.setCurrent(address, object)
	return diags
}

func (p *process) importObject(ctx context.Context, address string, by importNaming, exists bool) (tftypes.Value, []byte, Diagnostics) {
	schema, diags := p.resource(address)
	if diags != nil {
		return tftypes.Value{}, nil, diags
	}
	request := &tfprotov6.ImportResourceStateRequest{TypeName: typeOf(address)}
	if diags := by(p, request); diags != nil {
		return tftypes.Value{}, nil, diags
	}
	response, err := p.server.ImportResourceState(ctx, request)
	if err != nil {
		return tftypes.Value{}, nil, protocolError(address, err)
	}
	if diags = fromProtocol(address, response.Diagnostics); diags.Err() != nil {
		return tftypes.Value{}, nil, diags
	}
	if len(response.ImportedResources) != 1 {
		return tftypes.Value{}, nil, core(address, "Multiple import states not supported", "The provider must return one object.")
	}
	imported := response.ImportedResources[0]
	value, err := imported.State.Unmarshal(schema.ValueType())
	if err != nil {
		return tftypes.Value{}, nil, protocolError(address, err)
	}
	if problems := checkWriteOnly(schema.Block, value); len(problems) > 0 {
		return tftypes.Value{}, nil, bugs(address, "Provider returned a write-only attribute during import", problems)
	}
	if exists {
		return tftypes.Value{}, nil, append(
			diags,
			core(address, "Resource already managed by Terraform", "The state has an object at this address.")...)
	}
	value, private, more := p.refresh(ctx, address, value, imported.Private)
	if diags = append(diags, more...); diags.Err() == nil && value.IsNull() {
		diags = append(diags, core(address, "Cannot import non-existent remote object", "There is nothing with this id.")...)
	}
	return value, private, diags
}

// Lose removes resources from the state, like `terraform state rm`.
func (w *Workspace) Lose(addresses ...string) {
	for _, address := range addresses {
		delete(w.State, address)
	}
}

// Taint marks a resource for replacement.
func (w *Workspace) Taint(address string) {
	if instance := w.State[address]; instance.Current != nil {
		tainted := *instance.Current
		tainted.Tainted = true
		w.State.setCurrent(address, &tainted)
	}
}

// read reads data sources. An apply uses the results of its plan; a destroy without a refresh reads none.
func (w *Workspace) read(ctx context.Context, configuration Configuration, opts options) (Configuration, Diagnostics) {
	var diags Diagnostics
	read := configuration
	read.Resources = map[string]Resource{}
	for _, address := range names(configuration.Resources) {
		resource := configuration.Resources[address]
		attributes := map[string]any{}
		for name, value := range resource.Attributes {
			value, more := w.readValue(ctx, configuration, value, opts)
			diags, attributes[name] = append(diags, more...), value
		}
		resource.Attributes = attributes
		read.Resources[address] = resource
	}
	return read, diags
}

func (w *Workspace) readValue(ctx context.Context, configuration Configuration, value any, opts options) (any, Diagnostics) {
	var diags Diagnostics
	switch value := value.(type) {
	case Reading:
		if opts.destroy && opts.skipRefresh {
			return Unknown{}, nil
		}
		values, diags := w.ReadData(ctx, configuration, value.DataSource, value.Attributes)
		return values[value.Attribute], diags
	case []any:
		read := make([]any, len(value))
		for i, element := range value {
			item, more := w.readValue(ctx, configuration, element, opts)
			diags, read[i] = append(diags, more...), item
		}
		return read, diags
	}
	return value, nil
}

// Evaluate calls functions, as an output does.
func (w *Workspace) Evaluate(ctx context.Context, expression any) (any, error) {
	p, err := w.startProcess(ctx, false)
	if err != nil {
		return nil, err
	}
	evaluated, err := p.evaluate(ctx, expression)
	if err != nil {
		return nil, err
	}
	value, err := infer(evaluated)
	if err != nil {
		return nil, err
	}
	return FromValue(value), nil
}
