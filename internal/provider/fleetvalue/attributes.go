package fleetvalue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// ModelAttribute is the attribute fleet with the model alone. further extends its description.
func ModelAttribute(further string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: "The fleet that `provider::flotilla::fleet` or `control_plane` returned, through a `local`.",
		Attributes: map[string]schema.Attribute{
			"format":      schemas.OptionalText("Format of the fleet."),
			"environment": schemas.RequiredText("Name of the environment."),
			"model":       schemas.RequiredText("Canonical JSON of the fleet." + further),
		},
	}
}

// ValuedAttribute adds configuration values.
func ValuedAttribute() schema.SingleNestedAttribute {
	attribute := ModelAttribute("")
	attribute.Attributes["config"] = EntriesAttribute(true, "The data of the config containers.")
	return attribute
}

// RenderedAttribute adds manifests, which rendering needs.
func RenderedAttribute() schema.SingleNestedAttribute {
	attribute := ValuedAttribute()
	attribute.Attributes["manifests"] = EntriesAttribute(false, "The manifests of the deployment targets, by full name.")
	return attribute
}

// EntriesAttribute is for entries. With pending, Terraform reads the data source only after all are known.
func EntriesAttribute(required bool, what string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required: required, Optional: !required, MarkdownDescription: what,
		Attributes: map[string]schema.Attribute{
			"known":   schemas.RequiredText("JSON of the known ones, by name."),
			"pending": schemas.OptionalTextMap("Unknown ones, by name."),
		},
	}
}

// Hashed replaces the contents by a hash of the model, so that the state differs if the fleet does.
func Hashed(of types.Object) types.Object {
	attributes := of.Attributes()
	for name, value := range attributes {
		switch name {
		case "format", "environment":
		case "model":
			attributes[name] = types.StringValue(tfvalue.Hash(value.(types.String).ValueString()))
		case "config": // it is required
			attributes[name] = types.ObjectValueMust(EntriesTypes,
				map[string]attr.Value{"known": types.StringValue("{}"), "pending": types.MapNull(types.StringType)})
		default:
			attributes[name] = types.ObjectNull(EntriesTypes)
		}
	}
	return types.ObjectValueMust(of.AttributeTypes(context.Background()), attributes)
}
