// Package stateonly implements resources that describe objects of a fleet in the state alone.
package stateonly

import (
	"context"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

type definition struct {
	collection string                                    // of a fleet
	others     attributes                                // override the table
	check      func(given map[string]any) fleet.Findings // beside the fleet's; may be nil
	derive     func(values map[string]attr.Value)        // sets computed attributes; may be nil

	schema schema.Schema
}

// newResource computes attributes at plan, so that Terraform can also plan dependent objects.
func newResource(o definition) func() resource.Resource {
	o.schema = schemaOf(o.collection, o.others)
	framed := frame.Resource[types.Object]{
		Name: strings.ReplaceAll(o.schema.Description, " ", "_"), Schema: o.schema, Validate: o.validate, Create: o.store, Update: o.store,
	}
	if o.derive != nil {
		framed.Plan = o.complete
	}
	return framed.New
}

func (o definition) validate(_ context.Context, given *types.Object, diagnostics *diag.Diagnostics) {
	configured := given.Attributes()
	maps.DeleteFunc(configured, func(name string, value attr.Value) bool {
		return value.IsNull() || !o.schema.Attributes[name].IsRequired() && !o.schema.Attributes[name].IsOptional()
	})
	value := tfvalue.PlainMap(configured)
	findings := fleet.CheckObject(o.collection, value)
	if o.check != nil {
		findings = append(findings, o.check(value)...)
	}
	tfvalue.AddFindings(diagnostics, path.Empty(), "Invalid "+o.schema.Description, findings)
}

// complete sets the computed attributes; some may stay unknown.
func (o definition) complete(ctx context.Context, c *frame.Call[types.Object]) {
	attributes := c.Model.Attributes()
	o.derive(attributes)
	completed, wrong := types.ObjectValue(c.Model.AttributeTypes(ctx), attributes)
	for _, one := range wrong {
		c.Diagnostics.AddError("Value does not fit the schema", one.Detail())
	}
	*c.Model = completed
}

// store computes the attributes that were unknown at plan.
func (o definition) store(ctx context.Context, c *frame.Call[types.Object]) {
	if o.validate(ctx, c.Model, c.Diagnostics); o.derive != nil && !c.Diagnostics.HasError() {
		o.complete(ctx, c)
	}
}
