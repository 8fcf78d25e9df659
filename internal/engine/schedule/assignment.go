// Package schedule decides which deployment target runs on which host, and says why.
package schedule

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
)

// Assignment is one deployment target on one host.
type Assignment struct {
	Host         *Host
	Target       *Target
	Policies     []string     // the target policies that assign it, sorted; empty for an explicit assignment
	Namespace    string       // at most 63 characters
	Requires     []string     // full names of the deployment targets on this host that its workload requires, sorted
	Dependencies []Dependency // the same, with host and namespace
}

// Dependency is a deployment target that an assignment's workload requires, with the host that it is assigned
// to: the same host or, for a cluster, its cluster type.
type Dependency struct {
	Target    *Target
	Host      *Host
	Namespace string // of that assignment
}

// Key is the assignment's name in its fleet, and its folder: "<host>/<deployment target>".
func (a *Assignment) Key() string {
	return a.Host.Name + "/" + a.Target.Name
}

// String names the assignment in messages.
func (a *Assignment) String() string {
	return strings.TrimPrefix(a.Key(), clusterFolder)
}

// Reserved are the labels that Flotilla gives every assignment. Labels of host and target cannot replace them.
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

// IsReserved says whether a label key belongs to Flotilla.
func IsReserved(key string) bool {
	switch key {
	case "environment", "workspace", "workload", "deployment-target", "cluster-type", "cluster":
		return true
	}
	return false
}

// maxNamespace is the longest name that Kubernetes accepts for a namespace.
const maxNamespace = 63

// Namespace returns "<environment>-<host>-<deployment target>". Where that is too long for Kubernetes, it is cut and
// ends in a hash of the whole.
func Namespace(environment, host, target string) string {
	return naming.Shorten(environment+"-"+strings.TrimPrefix(host, clusterFolder)+"-"+target, maxNamespace)
}

// isCut says whether the names together are too long for a namespace.
func isCut(environment, host, target string) bool {
	return len(environment)+len("-")+len(strings.TrimPrefix(host, clusterFolder))+len("-")+len(target) > maxNamespace
}
