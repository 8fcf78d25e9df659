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

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// Resources, one for each collection of a fleet.
var (
	Cluster         = newResource(definition{collection: "clusters", others: ofOneEnvironment})
	ClusterType     = newResource(definition{collection: "cluster_types", others: ofOneEnvironment})
	ConfigContainer = newResource(
		definition{collection: "config_containers", derive: deriveJSON, others: attributes{ // lists: findings name their elements by number
			"encrypted":   schemas.OptionalDynamic(describeAttribute("config_containers", "encrypted")),
			"allow_plain": schemas.OptionalDynamic(describeAttribute("config_containers", "allow_plain")),
		}},
	)
	ConfigSchema = newResource(definition{collection: "config_schemas", check: checkSchema, others: attributes{
		"schema": schemas.RequiredText(describeAttribute("config_schemas", "schema")),
	}})
	Constraint  = newResource(definition{collection: "constraints", check: checkConstraint})
	Environment = newResource(definition{collection: "environments", check: checkEnvironment, others: attributes{
		"gitops_repo": schemas.RequiredDynamic(describeAttribute("environments", "gitops_repo")),
	}})
	TargetPolicy = newResource(definition{collection: "target_policies", others: ofOneEnvironment})
	Template     = newResource(definition{collection: "templates", check: checkTemplate})
	Workload     = newResource(definition{collection: "workloads"})
	Workspace    = newResource(definition{collection: "workspaces"})
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

type attributes = map[string]schema.Attribute

// schemaOf follows the table of a collection, except for others.
func schemaOf(collection string, others attributes) schema.Schema {
	table := fleet.CollectionTable(collection)
	all := make(attributes, len(table.Attributes))
	for i := range table.Attributes {
		all[table.Attributes[i].Name] = attributeOf(&table.Attributes[i])
	}
	maps.Copy(all, others)
	return schema.Schema{Description: table.Name, MarkdownDescription: table.Meaning, Attributes: all}
}

// attributeOf makes objects dynamic, since Terraform silently drops misspelt keys of nested attributes, and labels,
// since it would convert the number 1.10 to "1.1".
func attributeOf(attribute *fleet.Attribute) schema.Attribute {
	what := schemas.Described(attribute, "reference-fleet")
	byDefault, hasDefault := attribute.Default.(string)
	switch attribute.Type {
	case fleet.TextType:
		if hasDefault {
			return schemas.DefaultAttribute(byDefault, what)
		}
		return schema.StringAttribute{
			Required:            attribute.Required,
			Optional:            !attribute.Required && !attribute.Computed,
			Computed:            attribute.Computed,
			MarkdownDescription: what,
		}
	case fleet.NumberType:
		return schema.NumberAttribute{Optional: true, MarkdownDescription: what}
	case fleet.TextsType:
		if attribute.Ordered {
			return schema.ListAttribute{
				Required: attribute.Required, Optional: !attribute.Required, ElementType: types.StringType, MarkdownDescription: what,
			}
		}
		return schemas.NamesAttribute(what)
	case fleet.QuantitiesType:
		return schemas.OptionalTextMap(what)
	}
	return schema.DynamicAttribute{Required: attribute.Required, Optional: !attribute.Required, MarkdownDescription: what}
}

func describeAttribute(collection, attribute string) string {
	return schemas.Described(fleet.CollectionTable(collection).Find(attribute), "reference-fleet")
}

// ofOneEnvironment requires environment, which a fleet does not.
var ofOneEnvironment = attributes{
	"environment": schemas.RequiredText("Name of the environment that it belongs to."),
}

func deriveJSON(values map[string]attr.Value) {
	data := tfvalue.Plain(values["data"])
	values["json"] = types.StringUnknown()
	if data == nil {
		data = map[string]any{}
	}
	if fleet.IsKnown(data) {
		text, err := fleet.CanonicalJSON(data)
		if err == nil {
			values["json"] = types.StringValue(text)
		}
	}
}

// checkSchema compiles a known JSON Schema. Package fleet reports invalid JSON.
func checkSchema(given map[string]any) fleet.Findings {
	text, ok := given["schema"].(string)
	if !ok || len(fleet.CheckObject("config_schemas", given)) > 0 {
		return nil
	}
	if err := hydrate.CheckSchema(text); err != nil {
		return fleet.Findings{{Path: "schema", Message: err.Error()}}
	}
	return nil
}

func checkConstraint(given map[string]any) fleet.Findings {
	rule, known := fleet.DecodeConstraint(given)
	if !known {
		return nil
	}
	return constraint.CheckConstraint(rule)
}

func checkEnvironment(given map[string]any) fleet.Findings {
	return repository.CheckGitopsRepo("gitops_repo", given["gitops_repo"])
}

// checkTemplate parses the manifests after all are known.
func checkTemplate(given map[string]any) fleet.Findings {
	manifests, _ := given["manifests"].([]any)
	template := &fleet.Template{}
	template.Name, _ = given["name"].(string)
	template.Type, _ = given["type"].(string)
	template.ContentType, _ = given["content_type"].(string)
	for _, manifest := range manifests {
		text, ok := manifest.(string)
		if !ok {
			return nil
		}
		template.Manifests = append(template.Manifests, text)
	}
	return render.Validate(template)
}
