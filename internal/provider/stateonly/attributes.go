package stateonly

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

type attributes = map[string]schema.Attribute

// schemaOf is the schema of a resource, by the table by which a fleet reads its objects. Attributes that the resource has in another
// way are given.
func schemaOf(collection string, others attributes) schema.Schema {
	table := fleet.CollectionTable(collection)
	all := make(attributes, len(table.Attributes))
	for i := range table.Attributes {
		all[table.Attributes[i].Name] = attributeOf(&table.Attributes[i])
	}
	maps.Copy(all, others)
	return schema.Schema{Description: table.Name, MarkdownDescription: table.Meaning, Attributes: all}
}

// attributeOf is an attribute of a table as a resource has it. What has objects in it is dynamic, since Terraform drops misspelt
// keys of nested attributes without an error, and so are labels, since Terraform would make text of a number before it can be
// refused: "1.1" of 1.10.
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

// described is the description of an attribute of a collection's objects.
func described(collection, attribute string) string {
	return schemas.Described(fleet.CollectionTable(collection).Find(attribute), "reference-fleet")
}

// ofOneEnvironment is the attribute environment of what a fleet takes without it, too, but where a resource says which it is of.
var ofOneEnvironment = attributes{
	"environment": schemas.RequiredText("Name of the environment that it belongs to."),
}
