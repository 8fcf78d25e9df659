// Package stateonly has the resources that describe an object of a fleet, and exist only in the state.
package stateonly

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

var (
	_ resource.Resource                   = Resource{}
	_ resource.ResourceWithValidateConfig = Resource{}
	_ resource.ResourceWithModifyPlan     = Resource{}
)

// Object describes one kind of state-only resource: its schema, its checks, and what it derives.
type Object struct {
	Name       string // of the resource, without the provider's
	collection string // of a fleet that holds such objects, for its checks
	Schema     schema.Schema
	check      func(value any) fleet.Findings         // what the fleet's own checks do not know; may be nil
	derive     func(attributes map[string]attr.Value) // sets computed attributes; may be nil
}

// Resource is a resource that exists only in the state: it describes an object of a fleet. All computed attributes
// are known at plan, so that objects that refer to them can be planned, too.
type Resource struct {
	Object
}

func newResource(object Object) func() resource.Resource {
	return func() resource.Resource { return Resource{object} }
}

// Metadata names the resource.
func (r Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.Name
}

// Schema returns the kind's schema.
func (r Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.Object.Schema
}

// ValidateConfig checks the object as a fleet would, at the resource that is wrong.
func (r Resource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	attributes := r.attributes(ctx, req.Config.Raw, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	r.validate(attributes, &resp.Diagnostics)
}

func (r Resource) validate(attributes map[string]attr.Value, diagnostics *diag.Diagnostics) {
	configured := maps.Clone(attributes)
	maps.DeleteFunc(configured, func(name string, value attr.Value) bool {
		return value.IsNull() || !r.Object.Schema.Attributes[name].IsRequired() && !r.Object.Schema.Attributes[name].IsOptional()
	})
	value := tfvalue.PlainMap(configured)
	findings := fleet.CheckObject(r.collection, value)
	if r.check != nil {
		findings = append(findings, r.check(value)...)
	}
	tfvalue.AddFindings(diagnostics, path.Empty(), "Invalid "+r.Object.Schema.Description, findings)
}

// ModifyPlan sets the computed attributes, so that they are known at plan wherever that is possible.
func (r Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || r.derive == nil {
		return
	}
	attributes := r.attributes(ctx, req.Plan.Raw, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	r.derive(attributes)
	resp.Plan.Raw = r.raw(ctx, attributes, &resp.Diagnostics)
}

// Create stores the plan.
func (r Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.store(ctx, req.Plan.Raw, &resp.State, &resp.Diagnostics)
}

// Read leaves the state as it is: there is nothing outside of it.
func (r Resource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update stores the plan.
func (r Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.store(ctx, req.Plan.Raw, &resp.State, &resp.Diagnostics)
}

// Delete has nothing to do: the framework drops the state.
func (r Resource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// store derives the computed attributes again: what was unknown at plan is known now.
func (r Resource) store(ctx context.Context, plan tftypes.Value, state *tfsdk.State, diagnostics *diag.Diagnostics) {
	attributes := r.attributes(ctx, plan, diagnostics)
	if diagnostics.HasError() {
		return
	}
	r.validate(attributes, diagnostics)
	if diagnostics.HasError() {
		return
	}
	if r.derive != nil {
		r.derive(attributes)
	}
	state.Raw = r.raw(ctx, attributes, diagnostics)
}

func (r Resource) attributes(ctx context.Context, raw tftypes.Value, diagnostics *diag.Diagnostics) map[string]attr.Value {
	value, err := r.Object.Schema.Type().ValueFromTerraform(ctx, raw)
	if err != nil {
		diagnostics.AddError("Value does not fit the schema", err.Error())
		return nil
	}
	return value.(basetypes.ObjectValue).Attributes()
}

func (r Resource) raw(ctx context.Context, attributes map[string]attr.Value, diagnostics *diag.Diagnostics) tftypes.Value {
	typ := r.Object.Schema.Type().(basetypes.ObjectType)
	value, diags := basetypes.NewObjectValue(typ.AttrTypes, attributes)
	diagnostics.Append(diags...)
	raw, err := value.ToTerraformValue(ctx)
	if err != nil {
		diagnostics.AddError("Value does not fit the schema", err.Error())
	}
	return raw
}
