package fleet

import "cmp"

// ExplicitAssignment replaces scheduling. Either ClusterType or Cluster is set.
type ExplicitAssignment struct {
	ClusterType      string `json:"cluster_type,omitempty"`
	Cluster          string `json:"cluster,omitempty"`
	DeploymentTarget string `json:"deployment_target"`
}

var explicitKind = defineKind(Table{
	Name:    "assignment",
	Meaning: "One deployment target on one host: a cluster type, or a cluster.",
	Some:    []string{"cluster_type", "cluster"}, One: true,
}, func(a *ExplicitAssignment) []row {
	return []row{
		textAttribute(&a.ClusterType, Attribute{Meaning: "Name of the cluster type that it goes to."}),
		textAttribute(&a.Cluster, Attribute{Meaning: "Name of the cluster that it goes to."}),
		textAttribute(&a.DeploymentTarget, Attribute{
			Required: true, Meaning: "Full name of the deployment target, `<workload>-<target>`.",
		}),
	}
})

func decodeExplicitAssignment(d *decoder, o *ObjectReader) belonging {
	assignment := explicitKind.decode(o)
	o.Finish()
	d.Fleet.Assignments = append(d.Fleet.Assignments, assignment)
	ofType, ofCluster := assignment.ClusterType != "", assignment.Cluster != ""
	if ofType == ofCluster && (!ofType || isSet(assignment.ClusterType) && isSet(assignment.Cluster)) {
		o.Report("cluster_type", "give either cluster_type or cluster")
		return inEnvironment
	}
	d.refer(o.At("cluster_type"), "cluster_types", assignment.ClusterType)
	d.refer(o.At("cluster"), "clusters", assignment.Cluster)
	d.refer(o.At("deployment_target"), deploymentTargets, assignment.DeploymentTarget)
	if !o.unknown {
		d.registerAt(objectKey{"assignments", assignment.key()}, o.path, o.path)
	}
	return inEnvironment
}

func (a ExplicitAssignment) key() string {
	if a.Cluster != "" {
		return "clusters/" + a.Cluster + "/" + a.DeploymentTarget
	}
	return a.ClusterType + "/" + a.DeploymentTarget
}

// CompareExplicitAssignments sorts clusters first.
func CompareExplicitAssignments(a, b ExplicitAssignment) int {
	return cmp.Or(cmp.Compare(a.ClusterType, b.ClusterType), cmp.Compare(a.Cluster, b.Cluster),
		cmp.Compare(a.DeploymentTarget, b.DeploymentTarget))
}
