// Package schedule assigns deployment targets to hosts and gives the reason for each decision.
package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
)

// Assignment is one deployment target on one host.
type Assignment struct {
	Host         *Host
	Target       *Target
	Policies     []string     // names of the assigning target policies, sorted; empty if explicit
	Namespace    string       // at most 63 characters
	Requires     []string     // full names of required deployment targets on this host, sorted
	Dependencies []Dependency // the same with host and namespace
}

// Dependency is a required assignment, on the same host or on the cluster type of its cluster.
type Dependency struct {
	Target    *Target
	Host      *Host
	Namespace string
}

// Key returns "<host>/<deployment target>", the assignment's name and folder.
func (a *Assignment) Key() string {
	return a.Host.Name + "/" + a.Target.Name
}

func (a *Assignment) String() string {
	return strings.TrimPrefix(a.Key(), clusterFolder)
}

// Reserved returns the labels that Flotilla sets. They override labels of host and target.
func (a *Assignment) Reserved(environment string) fleet.Labels {
	reserved := fleet.Labels{
		"environment":       environment,
		"workspace":         a.Target.Workload.Workspace,
		"workload":          a.Target.Workload.Name,
		"deployment-target": a.Target.Name,
		"cluster-type":      a.Host.ClusterType.Name,
	}
	if a.Host.Cluster != nil {
		reserved["cluster"] = a.Host.Cluster.Name
	}
	return reserved
}

// IsReserved reports whether Flotilla sets the label key.
func IsReserved(key string) bool {
	switch key {
	case "environment", "workspace", "workload", "deployment-target", "cluster-type", "cluster":
		return true
	}
	return false
}

const maxNamespace = 63

// Namespace returns "<environment>-<host>-<deployment target>", shortened to 63 characters by a hash.
func Namespace(environment, host, target string) string {
	return naming.Shorten(environment+"-"+strings.TrimPrefix(host, clusterFolder)+"-"+target, maxNamespace)
}

// clusterFolder contains the folders of all clusters. Cluster types cannot have this name.
const clusterFolder = "clusters/"

// Host is a cluster type or a single cluster.
type Host struct {
	Name        string // cluster type, or "clusters/<cluster>": unique, and the host's folder
	ClusterType *fleet.ClusterType
	Cluster     *fleet.Cluster // nil for a cluster type
	Labels      fleet.Labels   // a cluster's labels override its type's
	Taints      []fleet.Taint  // a cluster's taints override its type's, by key and effect
	selectable  fleet.Labels   // with reserved labels, for selectors
}

// FirstName returns the base of names on its clusters.
func (h *Host) FirstName() string {
	if h.Cluster != nil {
		return h.Name
	}
	return h.ClusterType.FirstName()
}

// Target is a deployment target with its workload.
type Target struct {
	Name       string // full name, "<workload>-<target>": unique
	Workload   *fleet.Workload
	Target     *fleet.DeploymentTarget
	Labels     fleet.Labels // its own override its workload's
	selectable fleet.Labels // with reserved labels, for selectors
	ofWorkload fleet.Labels // reserved and workload labels, for workload selectors
}

// Meets reports whether the host satisfies requirements of a target policy.
func (h *Host) Meets(requirements fleet.Requirements) bool { return requirements.Matches(h.selectable) }

// Meets reports whether the target and its workload satisfy requirements of a target policy.
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
			continue // reported by the decoder
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

// SelectClusters returns the clusters that a target policy's cluster selector would match, in order.
func SelectClusters(f *fleet.Fleet, requirements fleet.Requirements) []string {
	var names []string
	for _, host := range hostsOf(f) {
		if host.Cluster != nil && requirements.Matches(host.selectable) {
			names = append(names, host.Cluster.Name)
		}
	}
	return names
}

// mergeTaints combines taints. As in Kubernetes, key and effect identify one; the cluster's wins.
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
