// Package frame has the code that all data sources and resources share around their own functions.
package frame

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

var (
	_ datasource.DataSourceWithConfigure      = &servedDataSource[struct{}]{}
	_ datasource.DataSourceWithValidateConfig = &servedDataSource[struct{}]{}
)

// DataSource is a data source with the configuration and result M.
type DataSource[M any] struct {
	Name        string // without the provider's name
	Description string // in Markdown
	Attributes  map[string]schema.Attribute
	// Validate checks the configuration without servers; parts may be unknown.
	Validate func(*M, *diag.Diagnostics)
	// Read sets the computed attributes. If there is an attribute timeouts, the context ends after its time, or after
	// the default and Longer.
	Read   func(context.Context, *connection.Connection, *M, *diag.Diagnostics)
	Longer func(*M) time.Duration // may be nil
}

// New returns the framework's data source.
func (d DataSource[M]) New() datasource.DataSource { return &servedDataSource[M]{is: d} }

type servedDataSource[M any] struct {
	is         DataSource[M]
	connection *connection.Connection
}

func (d *servedDataSource[M]) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + d.is.Name
}

func (d *servedDataSource[M]) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: d.is.Description, Attributes: d.is.Attributes}
}

func (d *servedDataSource[M]) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.connection, _ = req.ProviderData.(*connection.Connection)
}

func (d *servedDataSource[M]) ValidateConfig(
	ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse,
) {
	if d.is.Validate == nil {
		return
	}
	model := new(M)
	if resp.Diagnostics.Append(req.Config.Get(ctx, model)...); !resp.Diagnostics.HasError() {
		untype(model)
		d.is.Validate(model, &resp.Diagnostics)
	}
}

func (d *servedDataSource[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	if !checkConfigured(d.connection, &resp.Diagnostics) {
		return
	}
	defer func() { d.connection.Said.Reduce(&resp.Diagnostics) }()
	model := new(M)
	if resp.Diagnostics.Append(req.Config.Get(ctx, model)...); resp.Diagnostics.HasError() {
		return
	}
	retype := untype(model)
	if _, bounded := d.is.Attributes["timeouts"]; bounded {
		var given types.Dynamic
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("timeouts"), &given)...)
		untype(&given)
		deadlines := timeouts.Decode(timeouts.ReadTable, given, &resp.Diagnostics)
		if given.IsNull() && d.is.Longer != nil {
			deadlines[timeouts.Read] += d.is.Longer(model)
		}
		var cancel context.CancelFunc
		ctx, cancel = deadlines.During(ctx, timeouts.Read, &d.connection.Budget)
		defer cancel()
	}
	d.is.Read(ctx, d.connection, model, &resp.Diagnostics)
	timeouts.AddOver(ctx, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		retype()
		resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
	}
}

// checkConfigured reports a call without a provider. Terraform only validates before it has configured the provider.
func checkConfigured(c *connection.Connection, diagnostics *diag.Diagnostics) bool {
	if c == nil {
		diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is planned, read or written.")
	}
	return c != nil
}

// Function is a function of the provider.
type Function struct {
	Name       string
	Definition function.Definition
	// Run gets plain values; options that are left out are nil. It returns the result, which may be unknown, or an error, which
	// may be a *function.FuncError.
	Run func(context.Context, []any) (any, error)
}

// New returns the framework's function.
func (f Function) New() function.Function { return servedFunction{f} }

type servedFunction struct{ is Function }

func (f servedFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = f.is.Name
}

func (f servedFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = f.is.Definition
}

func (f servedFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	arguments, wrong := f.arguments(ctx, req)
	if wrong != nil {
		resp.Error = wrong
		return
	}
	result, err := f.is.Run(ctx, arguments)
	switch {
	case errors.As(err, &resp.Error):
	case err != nil:
		resp.Error = function.NewFuncError(err.Error())
	default:
		resp.Error = resp.Result.Set(ctx, result)
	}
}

// arguments returns the parameters, and the options behind them. Package wire may have read the only one.
func (f servedFunction) arguments(ctx context.Context, req function.RunRequest) ([]any, *function.FuncError) {
	if argument, isRead := wire.ArgumentOf(ctx); isRead {
		return []any{argument}, nil
	}
	given := make([]attr.Value, len(f.is.Definition.Parameters)) // the framework copies other types twice
	var options []types.Dynamic
	var targets []any
	for i := range given {
		targets = append(targets, &given[i])
	}
	if f.is.Definition.VariadicParameter != nil {
		targets = append(targets, &options)
	}
	if err := req.Arguments.Get(ctx, targets...); err != nil {
		return nil, err
	}
	if len(options) > 1 {
		return nil, function.NewArgumentFuncError(int64(len(given)+1), "there may be only one object of options")
	}
	arguments := make([]any, len(given)+1)
	for i, value := range given {
		arguments[i] = tfvalue.Plain(value)
	}
	for _, value := range options {
		arguments[len(given)] = tfvalue.Plain(value)
	}
	return arguments, nil
}

// untype replaces typed nulls in the dynamic attributes of a model by untyped ones. A string variable with the value null
// makes a typed null, whose IsNull is false in the framework. retype restores the types of attributes that are still null,
// because Terraform compares them with the configuration.
func untype(model any) (retype func()) {
	var changed []func()
	untypeFields(reflect.ValueOf(model).Elem(), &changed)
	return func() {
		for _, restore := range changed {
			restore()
		}
	}
}

func untypeFields(model reflect.Value, changed *[]func()) {
	switch value := model.Addr().Interface().(type) {
	case *types.Dynamic:
		if given := *value; given.IsUnderlyingValueNull() {
			*value = types.DynamicNull()
			*changed = append(*changed, func() {
				if value.IsNull() {
					*value = given
				}
			})
		}
		return
	case *types.Object:
		untypeObject(value, changed)
		return
	}
	if _, isValue := model.Interface().(attr.Value); isValue || model.Kind() != reflect.Struct {
		return
	}
	for i := range model.NumField() {
		if model.Type().Field(i).IsExported() {
			untypeFields(model.Field(i), changed)
		}
	}
}

func untypeObject(model *types.Object, changed *[]func()) {
	given, attributes := map[string]attr.Value{}, model.Attributes()
	for name, attribute := range attributes {
		if value, ok := attribute.(basetypes.DynamicValue); ok && value.IsUnderlyingValueNull() {
			given[name], attributes[name] = value, types.DynamicNull()
		}
	}
	if len(given) == 0 {
		return
	}
	kinds := model.AttributeTypes(context.Background())
	*model = types.ObjectValueMust(kinds, attributes)
	*changed = append(*changed, func() {
		now := model.Attributes()
		for name, value := range given {
			if now[name].IsNull() {
				now[name] = value
			}
		}
		*model = types.ObjectValueMust(kinds, now)
	})
}
