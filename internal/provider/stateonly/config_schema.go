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
	Schema: kind("config_schemas", map[string]schema.Attribute{
		"schema": schemas.RequiredText(described("config_schemas", "schema")),
	}),
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
