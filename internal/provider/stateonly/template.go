package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

// Template returns the resource.
var Template = newResource(Object{
	Name:       "template",
	collection: "templates",
	check:      checkTemplate,
	Schema: schema.Schema{
		Description: "template",
		MarkdownDescription: "Go templates that turn an assignment into a file: `reconciler.yaml`, `namespace.yaml`, `platform-config.yaml`, `platform-secrets.yaml` " +
			"or `policy.yaml`. One of the same type and name as a built-in template replaces it.",
		Attributes: map[string]schema.Attribute{
			"name": schemas.NameAttribute("Name of the template, a DNS subdomain."),
			"type": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "`reconciler`, `namespace`, `config`, `secret` or `policy`.",
			},
			"content_type": schemas.DefaultAttribute("yaml", "`yaml`, `json`, `env`, `properties`, `sh` or `text`: decides the file's name and how it is checked."),
			"manifests": schema.ListAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "Texts of Go templates with sprig's functions, joined as YAML documents.",
			},
		},
	},
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
