package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var workspaceResource = newStateOnly(object{
	name:       "workspace",
	collection: "workspaces",
	schema: schema.Schema{
		Description: "workspace",
		MarkdownDescription: "A team: its workloads, the groups that may use its namespaces, its quota. The template of type `policy` " +
			"renders role bindings, quota and network policy into every namespace of the team.",
		Attributes: map[string]schema.Attribute{
			"name":               nameAttribute("Name of the workspace, a DNS label."),
			"contributor_groups": namesAttribute("Groups that may change what is in the team's namespaces."),
			"reader_groups":      namesAttribute("Groups that may look at what is in the team's namespaces."),
			"environments":       namesAttribute("Environments that the team may deploy to. Unset: all."),
			"resource_quota": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Hard limits of each namespace, as in a ResourceQuota: `{\"requests.cpu\" = \"2\"}`.",
			},
			"network_policy": defaultAttribute("none", "`isolated` lets in traffic from the team's own namespaces alone; `none` does nothing."),
			"labels":         labelsAttribute(),
		},
	},
})
