// Package schedule assigns deployment targets to hosts and gives the reason for each decision.
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
