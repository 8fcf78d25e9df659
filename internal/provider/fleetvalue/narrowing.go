package fleetvalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// Narrowing is by what data sources can select assignments; null means any.
type Narrowing struct {
	ClusterType, Cluster, DeploymentTarget types.String
}

func NarrowingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster_type":      schema.StringAttribute{Optional: true, MarkdownDescription: "Only assignments to this cluster type, or to clusters of it."},
		"cluster":           schema.StringAttribute{Optional: true, MarkdownDescription: "Only assignments to this cluster."},
		"deployment_target": schema.StringAttribute{Optional: true, MarkdownDescription: "Only assignments of this deployment target, by its full name."},
	}
}

// Check reports names that the fleet does not have: the result would be empty without an error.
func (n Narrowing) Check(f *fleet.Fleet, diagnostics *diag.Diagnostics) {
	var clusterTypes, clusters, targets []string
	for _, clusterType := range f.ClusterTypes {
		clusterTypes = append(clusterTypes, clusterType.Name)
	}
	for _, cluster := range f.Clusters {
		clusters = append(clusters, cluster.Name)
	}
	for _, workload := range f.Workloads {
		for _, target := range workload.DeploymentTargets {
			targets = append(targets, fleet.FullName(workload.Name, target.Name))
		}
	}
	for _, by := range []struct {
		attribute, kind string
		value           types.String
		names           []string
	}{
		{"cluster_type", "cluster type", n.ClusterType, clusterTypes},
		{"cluster", "cluster", n.Cluster, clusters},
		{"deployment_target", "deployment target", n.DeploymentTarget, targets},
	} {
		if name := by.value.ValueString(); !by.value.IsNull() && !slices.Contains(by.names, name) {
			diagnostics.AddAttributeError(path.Root(by.attribute), "No such "+by.kind,
				tfvalue.Sentence(fmt.Sprintf("no %s of this fleet is called %q%s", by.kind, name, fleet.DidYouMean(name, by.names))))
		}
	}
}

func (n Narrowing) Includes(assignment *schedule.Assignment) bool {
	cluster := ""
	if assignment.Host.Cluster != nil {
		cluster = assignment.Host.Cluster.Name
	}
	return (n.ClusterType.IsNull() || n.ClusterType.ValueString() == assignment.Host.ClusterType.Name) &&
		(n.Cluster.IsNull() || n.Cluster.ValueString() == cluster) &&
		(n.DeploymentTarget.IsNull() || n.DeploymentTarget.ValueString() == assignment.Target.Name)
}

// ValuedAttribute is a fleet with its configuration values, but without manifests. Terraform drops these, so that
// an unknown value in them does not defer the data source to apply.
func ValuedAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: "What `provider::flotilla::fleet` or `control_plane` returned, through a `local`.",
		Attributes: map[string]schema.Attribute{
			"format":      schema.StringAttribute{Optional: true, MarkdownDescription: "Format of the fleet."},
			"environment": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the environment."},
			"model":       schema.StringAttribute{Required: true, MarkdownDescription: "Canonical JSON of the fleet."},
			"config":      EntriesAttribute(true, "The data of the config containers."),
		},
	}
}

// RenderedAttribute is a fleet with all that is needed to render files.
func RenderedAttribute() schema.SingleNestedAttribute {
	attribute := ValuedAttribute()
	attribute.Attributes["manifests"] = EntriesAttribute(false, "The manifests of the deployment targets, by full name.")
	return attribute
}

// ModelAttribute is the fleet of a data source that needs only the model. Terraform drops the other attributes, so that
// an unknown value in them does not defer the data source to apply. further is added to the description of the model.
func ModelAttribute(further string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: "What `provider::flotilla::fleet` or `control_plane` returned, through a `local`.",
		Attributes: map[string]schema.Attribute{
			"format":      schema.StringAttribute{Optional: true, MarkdownDescription: "Format of the fleet."},
			"environment": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the environment."},
			"model":       schema.StringAttribute{Required: true, MarkdownDescription: "Canonical JSON of the fleet. The state keeps its hash" + further + "."},
		},
	}
}

// IncludesGone is includes for a folder that the fleet does not want any more.
func (n Narrowing) IncludesGone(key rollout.Key, result *pipeline.Result) bool {
	cluster, isCluster := strings.CutPrefix(key.Host, "clusters/")
	clusterType := key.Host
	if isCluster {
		clusterType = ""
		for _, one := range result.Fleet.Clusters {
			if one.Name == cluster {
				clusterType = one.ClusterType
			}
		}
	}
	return (n.ClusterType.IsNull() || n.ClusterType.ValueString() == clusterType) &&
		(n.Cluster.IsNull() || isCluster && n.Cluster.ValueString() == cluster) &&
		(n.DeploymentTarget.IsNull() || n.DeploymentTarget.ValueString() == key.DeploymentTarget)
}

type Rendered struct {
	Format      types.String `tfsdk:"format"`
	Environment types.String `tfsdk:"environment"`
	Model       types.String `tfsdk:"model"`
	Config      *Entries     `tfsdk:"config"`
	Manifests   *Entries     `tfsdk:"manifests"`
}

func (m Rendered) Value(diagnostics *diag.Diagnostics) fleet.Value {
	return fleet.Value{
		Format: m.Format.ValueString(), Environment: m.Environment.ValueString(), Model: m.Model.ValueString(),
		Config: m.Config.Read(diagnostics), Manifests: m.Manifests.Read(diagnostics),
	}
}
