package fleetvalue

import (
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Narrowing selects assignments in data sources. null selects all.
type Narrowing struct {
	ClusterType      types.String `tfsdk:"cluster_type"`
	Cluster          types.String `tfsdk:"cluster"`
	DeploymentTarget types.String `tfsdk:"deployment_target"`
}

// NarrowingAttributes are the attributes of a Narrowing.
func NarrowingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster_type":      schemas.OptionalText("Only assignments to this cluster type, or to clusters of it."),
		"cluster":           schemas.OptionalText("Only assignments to this cluster."),
		"deployment_target": schemas.OptionalText("Only assignments of this deployment target, by its full name."),
	}
}

// Check reports names that the fleet lacks, which would silently select nothing.
func (n Narrowing) Check(scheduled *schedule.Decisions, diagnostics *diag.Diagnostics) {
	var clusterTypes, clusters, targets []string
	for _, host := range scheduled.Hosts {
		if host.Cluster != nil {
			clusters = append(clusters, host.Cluster.Name)
		} else {
			clusterTypes = append(clusterTypes, host.ClusterType.Name)
		}
	}
	for _, target := range scheduled.Targets {
		targets = append(targets, target.Name)
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
			tfvalue.AddErrorf(diagnostics, path.Root(by.attribute), "No such "+by.kind,
				"no %s of this fleet is called %q%s", by.kind, name, fleet.DidYouMean(name, by.names))
		}
	}
}

// Includes reports whether an assignment is selected.
func (n Narrowing) Includes(assignment *schedule.Assignment) bool {
	cluster := ""
	if assignment.Host.Cluster != nil {
		cluster = assignment.Host.Cluster.Name
	}
	return n.selects(assignment.Host.ClusterType.Name, cluster, assignment.Target.Name)
}

// IncludesGone reports whether a folder is selected that is no longer wanted.
func (n Narrowing) IncludesGone(key folder.Key, f *fleet.Fleet) bool {
	cluster, isCluster := strings.CutPrefix(key.Host, "clusters/")
	if !isCluster {
		return n.selects(key.Host, "", key.DeploymentTarget)
	}
	clusterType := ""
	for i := range f.Clusters {
		if f.Clusters[i].Name == cluster {
			clusterType = f.Clusters[i].ClusterType
		}
	}
	return n.selects(clusterType, cluster, key.DeploymentTarget)
}

func (n Narrowing) selects(clusterType, cluster, target string) bool {
	return (n.ClusterType.IsNull() || n.ClusterType.ValueString() == clusterType) &&
		(n.Cluster.IsNull() || n.Cluster.ValueString() == cluster) &&
		(n.DeploymentTarget.IsNull() || n.DeploymentTarget.ValueString() == target)
}
