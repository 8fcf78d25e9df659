package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// narrowing is what data sources over assignments can be narrowed by; null means any.
type narrowing struct {
	clusterType, cluster, deploymentTarget types.String
}

func narrowingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster_type":      schema.StringAttribute{Optional: true, MarkdownDescription: "Only assignments to this cluster type, or to clusters of it."},
		"cluster":           schema.StringAttribute{Optional: true, MarkdownDescription: "Only assignments to this cluster."},
		"deployment_target": schema.StringAttribute{Optional: true, MarkdownDescription: "Only assignments of this deployment target, by its full name."},
	}
}

func (n narrowing) includes(assignment *schedule.Assignment) bool {
	cluster := ""
	if assignment.Host.Cluster != nil {
		cluster = assignment.Host.Cluster.Name
	}
	return (n.clusterType.IsNull() || n.clusterType.ValueString() == assignment.Host.ClusterType.Name) &&
		(n.cluster.IsNull() || n.cluster.ValueString() == cluster) &&
		(n.deploymentTarget.IsNull() || n.deploymentTarget.ValueString() == assignment.Target.Name)
}

// valuedFleetAttribute is a fleet with its configuration values, and no manifests: Terraform drops them,
// so that one that is not known yet never defers the data source to apply.
func valuedFleetAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: "What `provider::flotilla::fleet` or `control_plane` returned, through a `local`.",
		Attributes: map[string]schema.Attribute{
			"format":      schema.StringAttribute{Optional: true, MarkdownDescription: "Format of the fleet."},
			"environment": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the environment."},
			"model":       schema.StringAttribute{Required: true, MarkdownDescription: "Canonical JSON of the fleet."},
			"config": schema.MapAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "JSON of the data of each config container.",
			},
		},
	}
}

// renderedFleetAttribute is a fleet with all that files are made of.
func renderedFleetAttribute() schema.SingleNestedAttribute {
	attribute := valuedFleetAttribute()
	attribute.Attributes["manifests"] = schema.MapAttribute{
		Optional: true, ElementType: types.StringType,
		MarkdownDescription: "JSON of the manifests of each deployment target, by its full name.",
	}
	return attribute
}
