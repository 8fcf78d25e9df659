package frame

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var _ resource.ResourceWithIdentity = identifiedResource[struct{}]{}

// identifiedResource is a resource with an identity.
type identifiedResource[M any] struct{ importedResource[M] }

// IdentitySchema returns the schema.
func (r identifiedResource[M]) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: r.is.Identity}
}

func (r *servedResource[M]) identify(ctx context.Context, identity *tfsdk.ResourceIdentity, state *M, diagnostics *diag.Diagnostics) {
	if r.is.Identify == nil {
		return
	}
	for name, value := range r.is.Identify(state) {
		diagnostics.Append(identity.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// Imports reads the identity of an import by name; nil for an import by ID.
func Imports(ctx context.Context, req resource.ImportStateRequest, diagnostics *diag.Diagnostics) map[string]types.String {
	if req.Identity == nil || req.Identity.Raw.IsNull() {
		return nil
	}
	identity := map[string]types.String{}
	for name := range req.Identity.Schema.GetAttributes() {
		var value types.String
		diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root(name), &value)...)
		identity[name] = value
	}
	return identity
}
