package schedule

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// clusterFolder is the folder of all clusters. No cluster type can have this name.
const clusterFolder = "clusters/"

// Host is where a deployment target lands: a cluster type, or one cluster.
type Host struct {
	Name        string // the cluster type's name, or "clusters/<cluster>": unique, and the host's folder
	ClusterType *fleet.ClusterType
	Cluster     *fleet.Cluster // nil where the host is a cluster type
	Labels      fleet.Labels   // its own and, for a cluster, those of its type; its own replace its type's
	Taints      []fleet.Taint  // likewise, by key and effect
	selectable  fleet.Labels   // Labels and the reserved ones: what selectors see
}

// FirstName is the name after which what is on its clusters is called: see [fleet.ClusterType.FirstName].
func (h *Host) FirstName() string {
	if h.Cluster != nil {
		return h.Name
	}
	return h.ClusterType.FirstName()
}

// Target is a deployment target together with its workload.
type Target struct {
	Name       string // the full name, "<workload>-<target>": unique
	Workload   *fleet.Workload
	Target     *fleet.DeploymentTarget
	Labels     fleet.Labels // its own and its workload's; its own replace its workload's
	selectable fleet.Labels // Labels and the reserved ones: what selectors see
	ofWorkload fleet.Labels // the workload's and the reserved ones: what workload selectors see
}

// Meets says whether the host's labels, with the reserved ones, meet requirements, as for a target policy.
func (h *Host) Meets(requirements fleet.Requirements) bool { return requirements.Matches(h.selectable) }

// Meets says whether the labels of the target and its workload meet the requirements for the workload, and all its labels
// those for the target, as for a target policy. The reserved labels are among them.
func (t *Target) Meets(workload, target fleet.Requirements) bool {
	return workload.Matches(t.ofWorkload) && target.Matches(t.selectable)
}

func hostsOf(f *fleet.Fleet) []*Host {
	hosts := make([]*Host, 0, len(f.ClusterTypes)+len(f.Clusters))
	types := make(map[string]*Host, len(f.ClusterTypes))
	for i := range f.ClusterTypes {
		clusterType := &f.ClusterTypes[i]
		host := &Host{
			Name: clusterType.Name, ClusterType: clusterType, Labels: clusterType.Labels, Taints: clusterType.Taints,
			selectable: fleet.MergeLabels(clusterType.Labels, fleet.Labels{
				"environment": f.Environment, "cluster-type": clusterType.Name,
			}),
		}
		hosts, types[host.Name] = append(hosts, host), host
	}
	for i := range f.Clusters {
		cluster := &f.Clusters[i]
		ofType := types[cluster.ClusterType]
		if ofType == nil {
			continue // reported when the fleet was decoded
		}
		labels := fleet.MergeLabels(ofType.Labels, cluster.Labels)
		hosts = append(hosts, &Host{
			Name: clusterFolder + cluster.Name, ClusterType: ofType.ClusterType, Cluster: cluster,
			Labels: labels, Taints: mergeTaints(ofType.Taints, cluster.Taints),
			selectable: fleet.MergeLabels(labels, fleet.Labels{
				"environment": f.Environment, "cluster-type": cluster.ClusterType, "cluster": cluster.Name,
			}),
		})
	}
	slices.SortFunc(hosts, func(a, b *Host) int { return cmp.Compare(a.Name, b.Name) })
	return hosts
}

// SelectClusters names the clusters of a fleet that meet requirements, in order. As for a target policy's cluster
// selector, their labels are their own, those of their cluster types and the reserved ones.
func SelectClusters(f *fleet.Fleet, requirements fleet.Requirements) []string {
	var names []string
	for _, host := range hostsOf(f) {
		if host.Cluster != nil && requirements.Matches(host.selectable) {
			names = append(names, host.Cluster.Name)
		}
	}
	return names
}

// mergeTaints returns a cluster's taints and its type's. Two of the same key and effect are one taint,
// as in Kubernetes: the cluster's.
func mergeTaints(ofType, own []fleet.Taint) []fleet.Taint {
	taints := slices.Clone(own)
	for _, taint := range ofType {
		if !slices.ContainsFunc(own, func(t fleet.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
			taints = append(taints, taint)
		}
	}
	return taints
}

func targetsOf(f *fleet.Fleet) []*Target {
	var targets []*Target
	for i := range f.Workloads {
		workload := &f.Workloads[i]
		ofWorkload := fleet.MergeLabels(workload.Labels, fleet.Labels{
			"environment": f.Environment, "workspace": workload.Workspace, "workload": workload.Name,
		})
		for j := range workload.DeploymentTargets {
			target := &workload.DeploymentTargets[j]
			name, labels := fleet.FullName(workload.Name, target.Name), fleet.MergeLabels(workload.Labels, target.Labels)
			targets = append(targets, &Target{
				Name: name, Workload: workload, Target: target, Labels: labels, ofWorkload: ofWorkload,
				selectable: fleet.MergeLabels(labels, fleet.Labels{
					"environment": f.Environment, "workspace": workload.Workspace,
					"workload": workload.Name, "deployment-target": name,
				}),
			})
		}
	}
	slices.SortFunc(targets, func(a, b *Target) int { return cmp.Compare(a.Name, b.Name) })
	return targets
}
