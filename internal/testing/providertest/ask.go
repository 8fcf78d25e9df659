package providertest

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// openedBlock is a validated block of a data source, an ephemeral resource, an action or a list.
type openedBlock struct {
	process *process
	address string
	schema  *tfprotov6.Schema
	config  tftypes.Value
	value   *tfprotov6.DynamicValue
}

// blockKind has the schemas and the validation of one kind of block.
type blockKind struct {
	prefix, name string
	schemas      func(p *process) map[string]*tfprotov6.Schema
	validate     func(ctx context.Context, p *process, typeName string, config *tfprotov6.DynamicValue) ([]*tfprotov6.Diagnostic, error)
}

var dataSources = blockKind{
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

var ephemeralResources = blockKind{
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

var actions = blockKind{
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

var lists = blockKind{
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
	kind blockKind,
	typeName string,
	attributes map[string]any,
) (*openedBlock, Diagnostics) {
	p, diags := l.startConfigured(ctx, configuration, known)
	if diags.Err() != nil {
		return nil, diags
	}
	a := &openedBlock{process: p, address: kind.prefix + typeName}
	var problems Diagnostics
	if a.schema, problems = schemaOf(kind.schemas(p), kind.name, typeName); problems != nil {
		return nil, problems
	}
	if a.config, problems = p.decode(ctx, a.schema.Block, attributes); len(problems) > 0 {
		return nil, append(diags, problems.at(a.address)...)
	}
	value, err := tfprotov6.NewDynamicValue(a.schema.ValueType(), a.config)
	if err != nil {
		return nil, protocolError(a.address, err)
	}
	a.value = &value
	validated, err := p.answers.validate(a.address, a.value, func() ([]*tfprotov6.Diagnostic, error) {
		return kind.validate(ctx, p, typeName, a.value)
	})
	if err != nil {
		return nil, protocolError(a.address, err)
	}
	if diags = append(diags, fromProtocol(a.address, validated)...); diags.Err() != nil {
		return nil, diags
	}
	return a, diags
}

func (a *openedBlock) result(value *tfprotov6.DynamicValue) (map[string]any, tftypes.Value, Diagnostics) {
	result, err := value.Unmarshal(a.schema.ValueType())
	if err != nil {
		return nil, result, protocolError(a.address, err)
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

// PlanData reads a data source while the provider's configuration may be unknown. If the data source's own configuration is
// unknown, PlanData only validates it.
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
	a, diags := w.openBlock(ctx, configuration, known, dataSources, typeName, attributes)
	if a == nil || !a.config.IsFullyKnown() {
		return nil, diags
	}
	read, err := a.process.server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{TypeName: typeName, Config: a.value})
	if err != nil {
		return nil, protocolError(a.address, err)
	}
	if diags = append(diags, fromProtocol(a.address, read.Diagnostics)...); diags.Err() != nil {
		return nil, diags
	}
	values, state, problems := a.result(read.State)
	if problems != nil {
		return nil, problems
	}
	// Like Terraform, it does not compare the result with the configuration.
	if !state.IsFullyKnown() {
		diags = append(diags, protocolError(a.address, errors.New("the result has unknown values"))...)
	}
	return values, diags
}

// OpenEphemeral opens an ephemeral resource with a known configuration. Unknown attributes of the result are Unknown.
func (w *Workspace) OpenEphemeral(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (map[string]any, Diagnostics) {
	a, diags := w.openBlock(ctx, configuration, false, ephemeralResources, typeName, attributes)
	if a == nil || !a.config.IsFullyKnown() {
		return nil, diags
	}
	opened, err := a.process.server.OpenEphemeralResource(ctx, &tfprotov6.OpenEphemeralResourceRequest{TypeName: typeName, Config: a.value})
	if err != nil {
		return nil, protocolError(a.address, err)
	}
	if diags = append(diags, fromProtocol(a.address, opened.Diagnostics)...); diags.Err() != nil {
		return nil, diags
	}
	values, _, problems := a.result(opened.Result)
	return values, append(diags, problems...)
}

// Invoke invokes an action like `terraform apply -invoke`, and returns its messages. An unknown configuration is only validated
// and planned.
func (w *Workspace) Invoke(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (progress []string, diags Diagnostics) {
	a, diags := w.openBlock(ctx, configuration, false, actions, typeName, attributes)
	if a == nil {
		return nil, diags
	}
	server := a.process.server.(tfprotov6.ActionServer) //nolint:forcetypeassert // after validation
	planned, err := server.PlanAction(ctx, &tfprotov6.PlanActionRequest{ActionType: typeName, Config: a.value})
	if err != nil {
		return nil, protocolError(a.address, err)
	}
	if diags = append(diags, fromProtocol(a.address, planned.Diagnostics)...); diags.Err() != nil || !a.config.IsFullyKnown() {
		return nil, diags
	}
	invoked, err := server.InvokeAction(ctx, &tfprotov6.InvokeActionRequest{ActionType: typeName, Config: a.value})
	if err != nil {
		return nil, protocolError(a.address, err)
	}
	for event := range invoked.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			diags = append(diags, fromProtocol(a.address, event.Diagnostics)...)
		}
	}
	return progress, diags
}

// Query lists resources like `terraform query`, and returns their identities and generated configuration.
func (w *Workspace) Query(
	ctx context.Context,
	configuration Configuration,
	typeName string,
	attributes map[string]any,
) (identities, resources []map[string]any, diags Diagnostics) {
	a, diags := w.openBlock(ctx, configuration, true, lists, typeName, attributes)
	if a == nil {
		return nil, nil, diags
	}
	server := a.process.server.(tfprotov6.ListResourceServer) //nolint:forcetypeassert // after validation
	listed, err := server.ListResource(ctx, &tfprotov6.ListResourceRequest{TypeName: typeName, Config: a.value, IncludeResource: true})
	if err != nil {
		return nil, nil, protocolError(a.address, err)
	}
	for result := range listed.Results {
		if diags = append(diags, fromProtocol(a.address, result.Diagnostics)...); diags.Err() != nil {
			return nil, nil, diags
		}
		identity, err := result.Identity.IdentityData.Unmarshal(a.process.answers.ids.IdentitySchemas[typeName].ValueType())
		if err != nil {
			return nil, nil, protocolError(a.address, err)
		}
		resource, err := result.Resource.Unmarshal(a.process.schema.ResourceSchemas[typeName].ValueType())
		if err != nil {
			return nil, nil, protocolError(a.address, err)
		}
		named, _ := FromValue(identity).(map[string]any)
		generated, _ := FromValue(resource).(map[string]any)
		identities, resources = append(identities, named), append(resources, generated)
	}
	return identities, resources, diags
}
