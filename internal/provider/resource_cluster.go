package provider

import "github.com/hashicorp/terraform-plugin-framework/resource/schema"

var clusterResource = newStateOnly(object{
	name:       "cluster",
	collection: "clusters",
	schema: schema.Schema{
		Description: "cluster",
		MarkdownDescription: "One physical cluster of one cluster type, with labels of its own. A target policy with a `cluster_selector` " +
			"assigns to single clusters, whose folders are `clusters/<cluster>`.",
		Attributes: map[string]schema.Attribute{
			"name":         nameAttribute("Name of the cluster, a DNS label."),
			"environment":  environmentAttribute(false),
			"cluster_type": schema.StringAttribute{Required: true, MarkdownDescription: "Name of its cluster type, whose labels it has too, its own winning."},
			"labels":       labelsAttribute(),
			"taints":       taintsAttribute(),
			"description":  descriptionAttribute(),
		},
	},
})
