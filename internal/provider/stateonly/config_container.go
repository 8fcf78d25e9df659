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
				Optional: true,
				MarkdownDescription: "An object of any shape. Types are kept; `null` removes a key that another container gives. Required unless `secrets` or " +
					"`encrypted` is given.",
			},
			"secrets": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "References to secrets in stores, by key: `{DB_PASSWORD = {store = \"vault\", key = \"prod/db\", property = \"password\", version = \"3\"}}`. " +
					"`store` is one of the `secret_stores` of the cluster types that the container reaches, and `key` the secret's name in it; `property` is a part of " +
					"the secret, `version` one of its versions, where the store has such. References merge as `data` do and share its keys: a key is either a value or a " +
					"secret. `null` removes a key that another container gives. The secret itself is not read, so it is in no plan and no state.",
			},
			"encrypted": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "List of encrypted files, such as `[file(\"db.sops.yaml\")]`: each is one YAML document, a Secret that SOPS has encrypted or a SealedSecret, of " +
					"1 MiB at most. They are copied as they are to the folders of the assignments that the container reaches.",
			},
			"allow_plain": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "List of the names of values in `data` that may look like a credential, as the error about them gives them: `KEY`, or `DB.PASSWORD` for a member of an " +
					"object. Without it such a value is an error, since values are committed as they are.",
			},
			"priority": schema.NumberAttribute{
				Optional:            true,
				MarkdownDescription: "Where containers disagree, the higher priority wins. Default 0. The guide \"Configuration, explained\" has the whole order.",
			},
			"json": schema.StringAttribute{Computed: true, MarkdownDescription: "Canonical JSON of `data`; `{}` without."},
		},
	},
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
