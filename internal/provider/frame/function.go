package frame

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
)

// Function is a function of the provider.
type Function struct {
	Name       string
	Definition function.Definition
	// Run returns the result, which may be unknown, or an error.
	Run func(context.Context, function.RunRequest) (any, *function.FuncError)
}

// New returns the framework's function.
func (f Function) New() function.Function { return servedFunction{f} }

type servedFunction struct{ is Function }

// Metadata names the function.
func (f servedFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = f.is.Name
}

// Definition describes the function.
func (f servedFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = f.is.Definition
}

// Run calls the function.
func (f servedFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	result, err := f.is.Run(ctx, req)
	if resp.Error = err; err == nil {
		resp.Error = resp.Result.Set(ctx, result)
	}
}
