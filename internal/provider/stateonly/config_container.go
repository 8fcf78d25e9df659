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
	Schema: kind("config_containers", map[string]schema.Attribute{ // lists: findings name their elements by number
		"encrypted":   schemas.OptionalDynamic(described("config_containers", "encrypted")),
		"allow_plain": schemas.OptionalDynamic(described("config_containers", "allow_plain")),
	}),
	derive: func(attributes map[string]attr.Value) {
		data := tfvalue.Plain(attributes["data"])
		attributes["json"] = types.StringUnknown()
		if data == nil {
			data = map[string]any{}
		}
		if fleet.IsKnown(data) {
			text, err := fleet.CanonicalJSON(data)
			if err == nil {
				attributes["json"] = types.StringValue(text)
			}
		}
	},
})
