package stateonly

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

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
