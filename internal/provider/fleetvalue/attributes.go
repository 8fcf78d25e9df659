package fleetvalue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// Terraform drops what a fleet has besides the attributes that a data source names, so that an unknown value in that does not
// defer the data source to apply.

// ModelAttribute is the fleet of a data source that needs only the model. further is added to what the documentation says
// of the model.
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

// ValuedAttribute is a fleet with its configuration values, but without manifests.
func ValuedAttribute() schema.SingleNestedAttribute {
	attribute := ModelAttribute("")
	attribute.Attributes["config"] = EntriesAttribute(true, "The data of the config containers.")
	return attribute
}

// RenderedAttribute is a fleet with all that is needed to render files.
func RenderedAttribute() schema.SingleNestedAttribute {
	attribute := ValuedAttribute()
	attribute.Attributes["manifests"] = EntriesAttribute(false, "The manifests of the deployment targets, by full name.")
	return attribute
}

// EntriesAttribute is the attribute for the entries of one kind. Without pending, a data source would be read before all of
// them are known.
func EntriesAttribute(required bool, what string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required: required, Optional: !required, MarkdownDescription: what,
		Attributes: map[string]schema.Attribute{
			"known":   schemas.RequiredText("JSON of those that are known, by name."),
			"pending": schemas.OptionalTextMap("Those that are not known yet, by name."),
		},
	}
}

// Hashed is a fleet with a hash of its model in place of its contents, so that another fleet is a difference in the state.
func Hashed(of types.Object) types.Object {
	attributes := of.Attributes()
	for name, value := range attributes {
		switch name {
		case "format", "environment":
		case "model":
			attributes[name] = types.StringValue(tfvalue.Hash(value.(types.String).ValueString()))
		case "config": // it is required
			attributes[name] = types.ObjectValueMust(
				EntriesTypes,
				map[string]attr.Value{"known": types.StringValue("{}"), "pending": types.MapNull(types.StringType)},
			)
		default:
			attributes[name] = types.ObjectNull(EntriesTypes)
		}
	}
	return types.ObjectValueMust(of.AttributeTypes(context.Background()), attributes)
}
