package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// ConfigContainer returns the resource.
var ConfigContainer = newResource(Object{
	Name:       "config_container",
	collection: "config_containers",
	Schema: schema.Schema{
		Description: "config container",
		MarkdownDescription: "Labelled configuration values of the platform. A container reaches every assignment that has all of its " +
			"labels, on the host or on the deployment target; the labels `environment`, `workspace`, `workload`, `deployment-target`, " +
			"`cluster-type` and `cluster` are labels of every assignment.",
		Attributes: map[string]schema.Attribute{
			"name":        schemas.NameAttribute("Name of the container, a DNS subdomain."),
			"environment": schemas.EnvironmentAttribute(true),
			"labels":      schemas.LabelsAttribute(),
			"data": schema.DynamicAttribute{
				Required:            true,
				MarkdownDescription: "An object of any shape. Types are kept; `null` removes a key that another container gives.",
			},
			"priority": schema.NumberAttribute{
				Optional:            true,
				MarkdownDescription: "Where containers disagree, the higher priority wins. Default 0. The guide \"Configuration, explained\" has the whole order.",
			},
			"json": schema.StringAttribute{Computed: true, MarkdownDescription: "Canonical JSON of `data`."},
		},
	},
	derive: func(attributes map[string]attr.Value) {
		data := tfvalue.Plain(attributes["data"])
		attributes["json"] = types.StringUnknown()
		if fleet.IsKnown(data) {
			text, err := fleet.CanonicalJSON(data)
			if err == nil {
				attributes["json"] = types.StringValue(text)
			}
		}
	},
})
