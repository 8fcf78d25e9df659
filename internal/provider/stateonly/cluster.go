package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// Cluster returns the resource.
var Cluster = newResource(Object{
	Name:       "cluster",
	collection: "clusters",
	Schema: schema.Schema{
		Description: "cluster",
		MarkdownDescription: "One physical cluster of one cluster type, with labels of its own. A target policy with a `cluster_selector` " +
			"assigns to single clusters, whose folders are `clusters/<cluster>`.",
		Attributes: map[string]schema.Attribute{
			"name":         schemas.NameAttribute("Name of the cluster, a DNS label."),
			"environment":  schemas.EnvironmentAttribute(false),
			"cluster_type": schema.StringAttribute{Required: true, MarkdownDescription: "Name of its cluster type, whose labels it has too, its own winning."},
			"labels":       schemas.LabelsAttribute(),
			"taints":       schemas.TaintsAttribute(),
			"description":  schemas.DescriptionAttribute(),
		},
	},
})
