package schedule

import (
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// checkClusters finds assignments that clash on a cluster, on which the assignments of its cluster type run, too.
func (s *scheduler) checkClusters(assignments []*Assignment) {
	type place struct{ host, namespace string }
	type resident struct {
		clusterType string
		target      *Target
	}
	var c clashes
	places, residents := map[place]*Assignment{}, map[resident]*Assignment{}
	for _, ofClusters := range []bool{false, true} {
		for _, assignment := range assignments {
			host, clusterType := assignment.Host, assignment.Host.ClusterType.Name
			if (host.Cluster != nil) != ofClusters {
				continue
			}
			if first := residents[resident{clusterType, assignment.Target}]; first != nil {
				c.Add(clash{first, assignment.Target}, assignment)
			}
			if !ofClusters {
				residents[resident{clusterType, assignment.Target}] = assignment
			}
			first := places[place{clusterType, assignment.Namespace}]
			if first == nil {
				first = places[place{host.Name, assignment.Namespace}]
			}
			if first != nil {
				c.addUnlessShared(first, assignment)
				continue
			}
			places[place{host.Name, assignment.Namespace}] = assignment
		}
	}
	s.findings = append(s.findings, c.findings()...)
}

type clash struct {
	first  *Assignment
	target *Target
}

type clashes struct {
	wording.Groups[clash, *Assignment]
}

func (c *clashes) addUnlessShared(first, second *Assignment) {
	if first.Target == second.Target {
		return // reported as a target that is assigned twice
	}
	if first.Target.Target.Namespace == "" || second.Target.Target.Namespace == "" {
		c.Add(clash{first, second.Target}, second)
	}
}

func (c *clashes) findings() fleet.Findings {
	var findings fleet.Findings
	for one, seconds := range c.All() {
		more := ""
		if len(seconds) > 1 {
			more = fmt.Sprintf(" (and %d more)", len(seconds)-1)
		}
		target := one.target
		path := fleet.TargetPath(target.Workload.Name, target.Target.Name)
		first, second := describeHost(one.first.Host), describeHost(seconds[0].Host)
		if one.first.Target == target {
			findings.Report(path,
				"deployment target %q is assigned to %s and to %s%s, where it would run twice: assign it to one of them",
				target.Name, first, second, more)
			continue
		}
		findings.Report(path.Attribute("namespace"), "deployment target %q on %s%s would share namespace %q with %q on %s by accident: "+
			"set namespace on one of them, or the same on both", target.Name, second, more, seconds[0].Namespace, one.first.Target.Name, first)
	}
	return findings
}

func describeHost(host *Host) string {
	if host.Cluster != nil {
		return fmt.Sprintf("cluster %q", host.Cluster.Name)
	}
	return fmt.Sprintf("cluster type %q", host.ClusterType.Name)
}
