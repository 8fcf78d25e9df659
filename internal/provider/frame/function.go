package frame

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

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
