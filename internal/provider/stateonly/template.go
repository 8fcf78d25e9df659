package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

// Template returns the resource.
var Template = newResource(Object{
	Name:       "template",
	collection: "templates",
	check:      checkTemplate,
	Schema: kind("templates", map[string]schema.Attribute{
		"manifests": schema.ListAttribute{Required: true, ElementType: types.StringType, MarkdownDescription: described("templates", "manifests")},
	}),
})

// checkTemplate parses the manifests, once all of them are known.
func checkTemplate(value any) fleet.Findings {
	object, _ := value.(map[string]any)
	manifests, _ := object["manifests"].([]any)
	template := &fleet.Template{}
	template.Name, _ = object["name"].(string)
	template.Type, _ = object["type"].(string)
	template.ContentType, _ = object["content_type"].(string)
	for _, manifest := range manifests {
		text, ok := manifest.(string)
		if !ok {
			return nil
		}
		template.Manifests = append(template.Manifests, text)
	}
	return render.Validate(template)
}
