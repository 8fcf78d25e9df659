package providertest

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// asked is a validated block of a data source, an ephemeral resource, an action or a list.
type asked struct {
	process *process
	address string
	schema  *tfprotov6.Schema
	config  tftypes.Value
	value   *tfprotov6.DynamicValue
}

// kindOfBlock tells such blocks apart until they are validated.
type kindOfBlock struct {
	prefix, name string
	schemas      func(p *process) map[string]*tfprotov6.Schema
	validate     func(ctx context.Context, p *process, typeName string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error)
}

var dataSources = kindOfBlock{
	prefix: "data.", name: "data source",
	schemas: func(p *process) map[string]*tfprotov6.Schema { return p.schema.DataSourceSchemas },
	validate: func(ctx context.Context, p *process, typeName string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
		resp, err := p.server.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: typeName, Config: config})
		if err != nil {
			return nil, err
		}
		return resp.Diagnostics, nil
	},
}

var ephemeralResources = kindOfBlock{
	prefix: "ephemeral.", name: "ephemeral resource",
	schemas: func(p *process) map[string]*tfprotov6.Schema { return p.schema.EphemeralResourceSchemas },
	validate: func(ctx context.Context, p *process, typeName string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
		resp, err := p.server.ValidateEphemeralResourceConfig(
			ctx,
			&tfprotov6.ValidateEphemeralResourceConfigRequest{TypeName: typeName, Config: config},
		)
		if err != nil {
			return nil, err
		}
		return resp.Diagnostics, nil
	},
}

var actions = kindOfBlock{
	prefix: "action.", name: "action",
	schemas: func(p *process) map[string]*tfprotov6.Schema {
		schemas := map[string]*tfprotov6.Schema{}
		for name, action := range p.schema.ActionSchemas {
			schemas[name] = action.Schema
		}
		return schemas
	},
	validate: func(ctx context.Context, p *process, typeName string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
		server, serves := p.server.(tfprotov6.ActionServer)
		if !serves {
			return nil, errors.New("the server has no actions")
		}
		resp, err := server.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: typeName, Config: config})
		if err != nil {
			return nil, err
		}
		return resp.Diagnostics, nil
	},
}

var lists = kindOfBlock{
	prefix: "list.", name: "list resource",
	schemas: func(p *process) map[string]*tfprotov6.Schema { return p.schema.ListResourceSchemas },
	validate: func(ctx context.Context, p *process, typeName string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error) {
		server, serves := p.server.(tfprotov6.ListResourceServer)
		if !serves {
			return nil, errors.New("the server lists nothing")
		}
		resp, err := server.ValidateListResourceConfig(ctx, &tfprotov6.ValidateListResourceConfigRequest{TypeName: typeName, Config: config})
		if err != nil {
			return nil, err
		}
		return resp.Diagnostics, nil
	},
}

// openBlock starts a process and validates a block. known requires a known configuration of the provider. The result is nil
// after an error.
func (l *launcher) openBlock(
	ctx context.Context,
	configuration Configuration,
	known bool,
	kind kindOfBlock,
	typeName string,
	attributes map[string]any,
) (*asked, Diagnostics) {
	p, said := l.begin(ctx, configuration, known)
	if said.Err() != nil {
		return nil, said
	}
	a := &asked{process: p, address: kind.prefix + typeName}
	var problems Diagnostics
	if a.schema, problems = schemaOf(kind.schemas(p), kind.name, typeName); problems != nil {
		return nil, problems
	}
	if a.config, problems = p.decode(ctx, a.schema.Block, attributes); len(problems) > 0 {
		return nil, append(said, problems.at(a.address)...)
	}
	value, err := tfprotov6.NewDynamicValue(a.schema.ValueType(), a.config)
	if err != nil {
		return nil, broken(a.address, err)
	}
	a.value = &value
	validated, err := p.answers.validate(a.address, a.value, func() ([]*tfprotov6.Diagnostic, error) {
		return kind.validate(ctx, p, typeName, a.value)
	})
	if err != nil {
		return nil, broken(a.address, err)
	}
	if said = append(said, fromProtocol(a.address, validated)...); said.Err() != nil {
		return nil, said
	}
	return a, said
}

func (a *asked) result(value *tfprotov6.DynamicValue) (map[string]any, tftypes.Value, Diagnostics) {
	result, err := value.Unmarshal(a.schema.ValueType())
	if err != nil {
		return nil, result, broken(a.address, err)
	}
	values, _ := FromValue(result).(map[string]any)
	return values, result, nil
}

// ReadData reads a data source with a known configuration.
func (w *Workspace) ReadData(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (map[string]any, Diagnostics) {
	return w.readData(ctx, configuration, typeName, attributes, true)
}

// PlanData reads a data source while the provider's configuration may be unknown. With an unknown configuration of its own it
// is only validated.
func (w *Workspace) PlanData(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (map[string]any, Diagnostics) {
	return w.readData(ctx, configuration, typeName, attributes, false)
}

func (w *Workspace) readData(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
	known bool,
) (map[string]any, Diagnostics) {
	a, said := w.openBlock(ctx, configuration, known, dataSources, typeName, attributes)
	if a == nil || !a.config.IsFullyKnown() {
		return nil, said
	}
	read, err := a.process.server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: typeName, Config: a.value})
	if err != nil {
		return nil, broken(a.address, err)
	}
	if said = append(said, fromProtocol(a.address, read.Diagnostics)...); said.Err() != nil {
		return nil, said
	}
	values, state, problems := a.result(read.State)
	if problems != nil {
		return nil, problems
	}
	// Like Terraform, it does not compare the result with the configuration.
	if !state.IsFullyKnown() {
		said = append(said, broken(a.address, errors.New("what was read is not wholly known"))...)
	}
	return values, said
}

// OpenEphemeral opens an ephemeral resource with a known configuration. Unknown attributes of the result are Unknown.
func (w *Workspace) OpenEphemeral(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (map[string]any, Diagnostics) {
	a, said := w.openBlock(ctx, configuration, false, ephemeralResources, typeName, attributes)
	if a == nil || !a.config.IsFullyKnown() {
		return nil, said
	}
	opened, err := a.process.server.OpenEphemeralResource(ctx, &tfprotov6.OpenEphemeralResourceRequest{TypeName: typeName, Config: a.value})
	if err != nil {
		return nil, broken(a.address, err)
	}
	if said = append(said, fromProtocol(a.address, opened.Diagnostics)...); said.Err() != nil {
		return nil, said
	}
	values, _, problems := a.result(opened.Result)
	return values, append(said, problems...)
}

// Invoke invokes an action like `terraform apply -invoke`, and returns its messages. An unknown configuration is only validated
// and planned.
func (w *Workspace) Invoke(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (progress []string, said Diagnostics) {
	a, said := w.openBlock(ctx, configuration, false, actions, typeName, attributes)
	if a == nil {
		return nil, said
	}
	server := a.process.server.(tfprotov6.ActionServer) //nolint:forcetypeassert // after validation
	planned, err := server.PlanAction(ctx, &tfprotov6.PlanActionRequest{ActionType: typeName, Config: a.value})
	if err != nil {
		return nil, broken(a.address, err)
	}
	if said = append(said, fromProtocol(a.address, planned.Diagnostics)...); said.Err() != nil || !a.config.IsFullyKnown() {
		return nil, said
	}
	invoked, err := server.InvokeAction(ctx, &tfprotov6.InvokeActionRequest{ActionType: typeName, Config: a.value})
	if err != nil {
		return nil, broken(a.address, err)
	}
	for event := range invoked.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			said = append(said, fromProtocol(a.address, event.Diagnostics)...)
		}
	}
	return progress, said
}

// Query lists resources like `terraform query`, and returns their identities and generated configuration.
func (w *Workspace) Query(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (identities, resources []map[string]any, said Diagnostics) {
	a, said := w.openBlock(ctx, configuration, true, lists, typeName, attributes)
	if a == nil {
		return nil, nil, said
	}
	server := a.process.server.(tfprotov6.ListResourceServer) //nolint:forcetypeassert // after validation
	listed, err := server.ListResource(ctx, &tfprotov6.ListResourceRequest{TypeName: typeName, Config: a.value, IncludeResource: true})
	if err != nil {
		return nil, nil, broken(a.address, err)
	}
	for result := range listed.Results {
		if said = append(said, fromProtocol(a.address, result.Diagnostics)...); said.Err() != nil {
			return nil, nil, said
		}
		identity, err := result.Identity.IdentityData.Unmarshal(a.process.answers.ids.IdentitySchemas[typeName].ValueType())
		if err != nil {
			return nil, nil, broken(a.address, err)
		}
		resource, err := result.Resource.Unmarshal(a.process.schema.ResourceSchemas[typeName].ValueType())
		if err != nil {
			return nil, nil, broken(a.address, err)
		}
		named, _ := FromValue(identity).(map[string]any)
		generated, _ := FromValue(resource).(map[string]any)
		identities, resources = append(identities, named), append(resources, generated)
	}
	return identities, resources, said
}
