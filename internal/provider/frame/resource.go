package frame

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
)

var (
	_ resource.ResourceWithConfigure      = &servedResource[struct{}]{}
	_ resource.ResourceWithValidateConfig = &servedResource[struct{}]{}
	_ resource.ResourceWithModifyPlan     = &servedResource[struct{}]{}
	_ resource.ResourceWithImportState    = importedResource[struct{}]{}
)

// Resource is a resource with the configuration, plan and state M. The context of each function but Validate and Import
// ends after the time in the attribute timeouts, if the schema has one. Functions may be nil.
type Resource[M any] struct {
	Name   string // without the provider's name
	Schema schema.Schema
	// Validate checks the configuration without servers; parts may be unknown.
	Validate func(context.Context, *M, *diag.Diagnostics)
	// Plan sets the computed attributes of the plan.
	Plan, PlanDestroy            func(context.Context, *Call[M])
	Create, Read, Update, Delete func(context.Context, *Call[M])
	Import                       func(context.Context, *connection.Connection, resource.ImportStateRequest, *resource.ImportStateResponse)
	// WriteOnly returns the attributes that are in no plan and no state.
	WriteOnly func(*M) map[string]any
	Identity  map[string]identityschema.Attribute
	// Identify returns the identity of a state, by the names in Identity.
	Identify func(*M) map[string]types.String
}

// New returns the framework's resource.
func (r Resource[M]) New() resource.Resource {
	served := &servedResource[M]{is: r}
	switch {
	case r.Identity != nil:
		return identifiedResource[M]{importedResource[M]{served}}
	case r.Import != nil:
		return importedResource[M]{served}
	}
	return served
}

type servedResource[M any] struct {
	is         Resource[M]
	connection *connection.Connection
}

// Call is one call of Terraform.
type Call[M any] struct {
	Connection  *connection.Connection
	Model       *M // the state in Read, Delete and PlanDestroy
	Prior       *M // the state; nil for a new resource
	Private     privatestate.State
	State       *tfsdk.State // of the response; nil in a plan
	Diagnostics *diag.Diagnostics
	// Store sets the state even after errors.
	Store bool
	// Gone removes the resource from the state in Read.
	Gone bool
}

func (r *servedResource[M]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.is.Name
	resp.ResourceBehavior.MutableIdentity = true // a new name or location moves the object
}

func (r *servedResource[M]) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.is.Schema
}

func (r *servedResource[M]) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.connection, _ = req.ProviderData.(*connection.Connection)
}

func (r *servedResource[M]) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	model := new(M)
	if resp.Diagnostics.Append(req.Config.Get(ctx, model)...); resp.Diagnostics.HasError() {
		return
	}
	untype(model)
	r.timeouts(ctx, req.Config, &resp.Diagnostics)
	r.is.Validate(ctx, model, &resp.Diagnostics)
}

// ModifyPlan plans even without a change of the configuration: the framework would silently accept drift of computed
// attributes.
func (r *servedResource[M]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	c := &Call[M]{Private: resp.Private, Diagnostics: &resp.Diagnostics}
	isDestroy := req.Plan.Raw.IsNull()
	switch {
	case !isDestroy && r.is.Plan != nil:
		if r.call(ctx, c, timeouts.Read, r.is.Plan, req.Plan, &req.Config, &req.State) {
			resp.Diagnostics.Append(resp.Plan.Set(ctx, c.Model)...)
		}
	case isDestroy && r.is.PlanDestroy != nil:
		r.call(ctx, c, timeouts.Read, r.is.PlanDestroy, req.State, nil, nil)
	}
}

func (r *servedResource[M]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	c := &Call[M]{Private: resp.Private, State: &resp.State, Diagnostics: &resp.Diagnostics}
	if r.call(ctx, c, timeouts.Create, r.is.Create, req.Plan, &req.Config, nil) {
		resp.Diagnostics.Append(resp.State.Set(ctx, c.Model)...)
		r.identify(ctx, resp.Identity, c.Model, &resp.Diagnostics)
	}
}

func (r *servedResource[M]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	c := &Call[M]{Private: resp.Private, State: &resp.State, Diagnostics: &resp.Diagnostics}
	kept := r.is.Read != nil && r.call(ctx, c, timeouts.Read, r.is.Read, req.State, nil, nil)
	if kept {
		r.identify(ctx, resp.Identity, c.Model, &resp.Diagnostics)
	}
	switch {
	case c.Gone:
		resp.State.RemoveResource(ctx)
	case kept:
		resp.Diagnostics.Append(resp.State.Set(ctx, c.Model)...)
	}
}

func (r *servedResource[M]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	c := &Call[M]{Private: resp.Private, State: &resp.State, Diagnostics: &resp.Diagnostics}
	if r.call(ctx, c, timeouts.Update, r.is.Update, req.Plan, &req.Config, &req.State) {
		resp.Diagnostics.Append(resp.State.Set(ctx, c.Model)...)
		r.identify(ctx, resp.Identity, c.Model, &resp.Diagnostics)
	}
}

// Delete removes the object. The framework drops the state.
func (r *servedResource[M]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	if r.is.Delete != nil {
		r.call(ctx, &Call[M]{Private: resp.Private, State: &resp.State, Diagnostics: &resp.Diagnostics}, timeouts.Delete,
			r.is.Delete, req.State, nil, nil)
	}
}

type importedResource[M any] struct{ *servedResource[M] }

func (r importedResource[M]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	r.is.Import(ctx, r.connection, req, resp)
}

type data interface {
	Get(ctx context.Context, target any) diag.Diagnostics
	GetAttribute(ctx context.Context, path path.Path, target any) diag.Diagnostics
}

// call reads the model, calls do, and removes the write-only attributes. It reports whether to keep the model.
func (r *servedResource[M]) call(
	ctx context.Context,
	c *Call[M],
	operation string,
	do func(context.Context, *Call[M]),
	model data,
	config *tfsdk.Config,
	state *tfsdk.State,
) bool {
	if !checkConfigured(r.connection, c.Diagnostics) {
		return false
	}
	c.Connection, c.Model = r.connection, new(M)
	defer func() { r.connection.Said.Reduce(c.Diagnostics) }()
	c.Diagnostics.Append(model.Get(ctx, c.Model)...)
	if state != nil && !state.Raw.IsNull() {
		c.Prior = new(M)
		c.Diagnostics.Append(state.Get(ctx, c.Prior)...)
		untype(c.Prior)
	}
	var writeOnly map[string]any
	if config != nil && r.is.WriteOnly != nil {
		writeOnly = r.is.WriteOnly(c.Model)
	}
	for name, attribute := range writeOnly {
		c.Diagnostics.Append(config.GetAttribute(ctx, path.Root(name), attribute)...)
	}
	retype := untype(c.Model)
	deadlines := r.timeouts(ctx, model, c.Diagnostics)
	if c.Diagnostics.HasError() {
		return false
	}
	if deadlines != nil {
		var cancel context.CancelFunc
		ctx, cancel = deadlines.During(ctx, operation, &r.connection.Budget)
		defer cancel()
	}
	do(ctx, c)
	timeouts.AddOver(ctx, c.Diagnostics)
	for _, attribute := range writeOnly {
		reflect.ValueOf(attribute).Elem().SetZero() // null
	}
	retype() // also the type of a write-only null: OpenTofu compares it with the configuration
	return c.Store || !c.Diagnostics.HasError()
}

func (r *servedResource[M]) timeouts(ctx context.Context, of data, diagnostics *diag.Diagnostics) timeouts.Timeouts {
	if _, bounded := r.is.Schema.Attributes["timeouts"]; !bounded {
		return nil
	}
	var given types.Dynamic
	diagnostics.Append(of.GetAttribute(ctx, path.Root("timeouts"), &given)...)
	return timeouts.Decode(timeouts.Table, given, diagnostics)
}

var _ resource.ResourceWithIdentity = identifiedResource[struct{}]{}

// identifiedResource is a resource with an identity.
type identifiedResource[M any] struct{ importedResource[M] }

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
