package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// ConfigSchema returns the resource.
var ConfigSchema = newResource(Object{
	Name:       "config_schema",
	collection: "config_schemas",
	check:      checkSchema,
	Schema: schema.Schema{
		Description:         "config schema",
		MarkdownDescription: "A JSON Schema that the values of every assignment with its labels must satisfy.",
		Attributes: map[string]schema.Attribute{
			"name":        schemas.NameAttribute("Name of the schema, a DNS subdomain."),
			"environment": schemas.EnvironmentAttribute(true),
			"labels":      schemas.LabelsAttribute(),
			"schema": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "Text of the JSON Schema, of draft 4 to 2020-12. Nothing is fetched for it: a remote `$ref` is an error. " +
					"It may have up to 4,000 objects and booleans.",
			},
		},
	},
})

// checkSchema compiles the JSON Schema, once it is known. A text that is not JSON is reported by the
// checks of package fleet.
func checkSchema(value any) fleet.Findings {
	object, _ := value.(map[string]any)
	text, ok := object["schema"].(string)
	if !ok || len(fleet.CheckObject("config_schemas", object)) > 0 {
		return nil
	}
	if err := hydrate.CheckSchema(text); err != nil {
		return fleet.Findings{{Path: "schema", Message: err.Error()}}
	}
	return nil
}
