package provider

import "github.com/hashicorp/terraform-plugin-framework/resource/schema"

var configSchemaResource = newStateOnly(object{
	name:       "config_schema",
	collection: "config_schemas",
	schema: schema.Schema{
		Description:         "config schema",
		MarkdownDescription: "A JSON Schema that the values of every assignment with its labels must satisfy.",
		Attributes: map[string]schema.Attribute{
			"name":        nameAttribute("Name of the schema, a DNS subdomain."),
			"environment": environmentAttribute(true),
			"labels":      labelsAttribute(),
			"schema": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Text of the JSON Schema, of draft 4 to 2020-12. Nothing is fetched for it: a remote `$ref` is an error.",
			},
		},
	},
})
