package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Start starts a provider process. Core starts one for a plan and one for an apply.
type Start func() (tfprotov6.ProviderServer, error)

type process struct {
	server  tfprotov6.ProviderServer
	schema  *tfprotov6.GetProviderSchemaResponse
	answers *answers
	known   bool                     // whether planned unknown values are known
	configs map[string]tftypes.Value // by address, of a validated configuration

	refreshesOrphans bool
}

type launcher struct {
	Start   Start
	answers *answers
}

func (l *launcher) startProcess(ctx context.Context, known bool) (*process, error) {
	server, err := l.Start()
	if err != nil {
		return nil, err
	}
	schema, err := l.answers.schemaOf(ctx, server)
	if err != nil {
		return nil, err
	}
	p := &process{server: server, schema: schema, answers: l.answers, known: known}
	return p, fromProtocol("", schema.Diagnostics).Err()
}

// validate checks the configuration in an unconfigured process before every plan. It returns the values of the resources.
func (l *launcher) validate(ctx context.Context, configuration Configuration) (map[string]tftypes.Value, Diagnostics) {
	p, err := l.startProcess(ctx, false)
	if err != nil {
		return nil, protocolError("", err)
	}
	configs := map[string]tftypes.Value{}
	_, diags := p.check(ctx, configuration.Provider)
	for _, address := range names(configuration.Resources) {
		schema, problems := p.resource(address)
		if problems != nil {
			diags = append(diags, problems...)
			continue
		}
		config, problems := p.decode(ctx, schema.Block, configuration.Resources[address].Attributes)
		if len(problems) == 0 {
			configs[address] = config
			problems = p.validate(ctx, address, schema, config)
		}
		diags = append(diags, problems.at(address)...)
	}
	return configs, diags
}

func (l *launcher) startConfigured(ctx context.Context, configuration Configuration, known bool) (*process, Diagnostics) {
	p, err := l.startProcess(ctx, known)
	if err != nil {
		return nil, protocolError("", err)
	}
	return p, p.configure(ctx, configuration.Provider)
}

// answers caches schemas and results of pure requests for all processes of a provider, to save time.
type answers struct {
	mu      sync.Mutex
	schema  *tfprotov6.GetProviderSchemaResponse
	ids     *tfprotov6.GetResourceIdentitySchemasResponse
	now     map[string]map[string]any                  // identities by address
	results map[string]*tfprotov6.CallFunctionResponse // by function and arguments
	valid   map[string][]*tfprotov6.Diagnostic         // by type and configuration
	decoded map[string]decodedObject                   // by address
}

func newAnswers() *answers {
	return &answers{
		now: map[string]map[string]any{}, results: map[string]*tfprotov6.CallFunctionResponse{},
		valid: map[string][]*tfprotov6.Diagnostic{}, decoded: map[string]decodedObject{},
	}
}

// maxValid bounds the memory of long tests.
const maxValid = 100

func (a *answers) validate(
	typeName string, config *tfprotov6.DynamicValue, ask func() ([]*tfprotov6.Diagnostic, error),
) ([]*tfprotov6.Diagnostic, error) {
	key := typeName + " " + string(config.MsgPack)
	a.mu.Lock()
	diags, isKnown := a.valid[key]
	a.mu.Unlock()
	if isKnown {
		return diags, nil
	}
	diags, err := ask()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.valid) == maxValid {
		clear(a.valid)
	}
	a.valid[key] = diags
	return diags, nil
}

func (a *answers) schemaOf(ctx context.Context, server tfprotov6.ProviderServer) (*tfprotov6.GetProviderSchemaResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.schema == nil {
		if a.ids, err = server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{}); err != nil {
			return nil, err
		}
		a.schema, err = server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	}
	return a.schema, err
}

func (a *answers) call(
	ctx context.Context,
	server tfprotov6.ProviderServer,
	request *tfprotov6.CallFunctionRequest,
) (*tfprotov6.CallFunctionResponse, error) {
	key := request.Name
	for _, argument := range request.Arguments {
		key += fmt.Sprintf(" %d %s", len(argument.MsgPack), argument.MsgPack)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	result := a.results[key]
	if result == nil {
		var err error
		if result, err = server.CallFunction(ctx, request); err != nil {
			return nil, err
		}
		a.results[key] = result
	}
	return result, nil
}

func (p *process) check(ctx context.Context, block map[string]any) (*tfprotov6.DynamicValue, Diagnostics) {
	schema := p.schema.Provider
	config, problems := p.decode(ctx, schema.Block, block)
	if len(problems) > 0 {
		return nil, problems
	}
	value, err := tfprotov6.NewDynamicValue(schema.ValueType(), config)
	if err != nil {
		return nil, protocolError("", err)
	}
	diags, err := p.answers.validate("provider", &value, func() ([]*tfprotov6.Diagnostic, error) {
		validated, err := p.server.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: &value})
		if err != nil {
			return nil, err
		}
		return validated.Diagnostics, nil
	})
	if err != nil {
		return nil, protocolError("", err)
	}
	return &value, fromProtocol("", diags)
}

func (p *process) configure(ctx context.Context, block map[string]any) Diagnostics {
	value, diags := p.check(ctx, block)
	if diags.Err() != nil {
		return diags
	}
	configured, err := p.server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: value, TerraformVersion: "1.11.0"})
	if err != nil {
		return append(diags, protocolError("", err)...)
	}
	return append(diags, fromProtocol("", configured.Diagnostics)...)
}

func (p *process) resource(address string) (*tfprotov6.Schema, Diagnostics) {
	schema, problems := schemaOf(p.schema.ResourceSchemas, "resource", address)
	if problems == nil &&
		slices.ContainsFunc(schema.Block.Attributes, func(attribute *tfprotov6.SchemaAttribute) bool { return attribute.NestedType != nil }) {
		return nil, protocolError(address, fmt.Errorf("nested attributes of resources are not simulated"))
	}
	return schema, problems
}

func schemaOf(schemas map[string]*tfprotov6.Schema, kind, address string) (*tfprotov6.Schema, Diagnostics) {
	schema, ok := schemas[typeOf(address)]
	switch {
	case !ok:
		return nil, core(address, "Invalid "+kind+" type", fmt.Sprintf("The provider does not support %s type %q.", kind, typeOf(address)))
	case len(schema.Block.BlockTypes) > 0:
		return nil, protocolError(address, fmt.Errorf("nested blocks are not simulated"))
	}
	return schema, nil
}

// typeOf returns the type of "type.name".
func typeOf(address string) string {
	name, _, _ := strings.Cut(address, ".")
	return name
}

func (p *process) decode(ctx context.Context, schema *tfprotov6.SchemaBlock, configured map[string]any) (tftypes.Value, Diagnostics) {
	var problems Diagnostics
	attributes := map[string]tftypes.Value{}
	for _, attribute := range schema.Attributes {
		at := tftypes.NewAttributePath().WithAttributeName(attribute.Name)
		report := func(summary, detail string) {
			problems = append(problems, Diagnostic{Error: true, Summary: summary, Detail: detail, At: at.String(), Path: at})
		}
		value, err := p.evaluate(ctx, configured[attribute.Name])
		if err != nil {
			report("Error in function call", err.Error())
			continue
		}
		decoded, err := toValue(attribute.ValueType(), value)
		switch {
		case err != nil:
			report("Incorrect attribute value type", err.Error())
		case decoded.IsNull() && attribute.Required:
			report("Missing required argument", fmt.Sprintf("The argument %q is required, but no definition was found.", attribute.Name))
		}
		attributes[attribute.Name] = decoded
	}
	for _, name := range names(configured) {
		if _, ok := attributes[name]; !ok {
			problems = append(problems, core("", "Unsupported argument", fmt.Sprintf("An argument named %q is not expected here.", name))...)
		}
	}
	if len(problems) > 0 {
		return tftypes.Value{}, problems
	}
	return tftypes.NewValue(schema.ValueType(), attributes), nil
}

func (p *process) evaluate(ctx context.Context, expression any) (any, error) {
	switch expression := expression.(type) {
	case Unknown:
		if p.known {
			return p.evaluate(ctx, expression.Then)
		}
		if inferred, err := infer(expression.Then); err == nil { // its type is known even so
			return tftypes.NewValue(inferred.Type(), tftypes.UnknownValue), nil
		}
		return Unknown{}, nil
	case Call:
		return p.call(ctx, expression)
	case []any:
		list := make([]any, len(expression))
		for i, element := range expression {
			value, err := p.evaluate(ctx, element)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(expression))
		for _, name := range names(expression) {
			value, err := p.evaluate(ctx, expression[name])
			if err != nil {
				return nil, err
			}
			object[name] = value
		}
		return object, nil
	}
	return expression, nil
}

// call calls a function of the provider. The result of unknown arguments is unknown, unless the parameter takes them.
func (p *process) call(ctx context.Context, expression Call) (any, error) {
	function, ok := p.schema.Functions[expression.Function]
	if !ok {
		return nil, fmt.Errorf("the provider has no function %q", expression.Function)
	}
	request := &tfprotov6.CallFunctionRequest{Name: expression.Function}
	for i, argument := range expression.Arguments {
		parameter := function.VariadicParameter
		if i < len(function.Parameters) {
			parameter = function.Parameters[i]
		}
		if parameter == nil {
			return nil, fmt.Errorf("function %q takes %d arguments", expression.Function, len(function.Parameters))
		}
		evaluated, err := p.evaluate(ctx, argument)
		if err != nil {
			return nil, err
		}
		value, err := toValue(parameter.Type, evaluated)
		switch {
		case err != nil:
			return nil, fmt.Errorf("argument %d: %w", i, err)
		case value.IsNull() && !parameter.AllowNullValue:
			return nil, fmt.Errorf("argument %q must not be null", parameter.Name)
		case !value.IsFullyKnown() && !parameter.AllowUnknownValues:
			return Unknown{}, nil
		}
		dynamic, err := tfprotov6.NewDynamicValue(parameter.Type, value)
		if err != nil {
			return nil, err
		}
		request.Arguments = append(request.Arguments, &dynamic)
	}
	response, err := p.answers.call(ctx, p.server, request)
	switch {
	case err != nil:
		return nil, err
	case response.Error != nil:
		return nil, fmt.Errorf("call to function %q failed: %s", expression.Function, response.Error.Text)
	}
	return response.Result.Unmarshal(function.Return.Type)
}
