package schedule

import (
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

func (s *scheduler) checkClusters(assignments []*Assignment) {
	types, clusters := map[string][]*Assignment{}, [][]*Assignment{}
	for len(assignments) > 0 {
		host, count := assignments[0].Host, 1
		for count < len(assignments) && assignments[count].Host == host {
			count++
		}
		if host.Cluster == nil {
			types[host.Name] = assignments[:count]
		} else {
			clusters = append(clusters, assignments[:count])
		}
		assignments = assignments[count:]
	}
	var c clashes
	residents := map[string]*residents{}
	for _, host := range s.hosts {
		if ofType := types[host.Name]; s.mayClash(ofType) {
			residents[host.Name] = newResidents(ofType, &c)
		}
	}
	for _, ofCluster := range clusters {
		name := ofCluster[0].Host.ClusterType.Name
		if types[name] != nil && residents[name] == nil {
			residents[name] = newResidents(types[name], &c)
		}
		if residents[name] != nil || s.mayClash(ofCluster) {
			residents[name].join(ofCluster, &c)
		}
	}
	s.findings = append(s.findings, c.findings()...)
}

// mayClash reports whether namespaces of a host can be equal. Generated ones are unique unless shortened.
func (s *scheduler) mayClash(ofHost []*Assignment) bool {
	for _, assignment := range ofHost {
		if assignment.Target.Target.Namespace != "" ||
			isCut(s.fleet.Environment, assignment.Host.FirstName(), assignment.Target.Name) {
			return true
		}
	}
	return false
}

// residents indexes the assignments of a cluster type, which run on each of its clusters.
type residents struct {
	namespaces map[string]*Assignment
	targets    map[*Target]*Assignment
}

func newResidents(ofType []*Assignment, to *clashes) *residents {
	found := &residents{
		namespaces: make(map[string]*Assignment, len(ofType)), targets: make(map[*Target]*Assignment, len(ofType)),
	}
	for _, assignment := range ofType {
		found.targets[assignment.Target] = assignment
		claimNamespace(found.namespaces, assignment, to)
	}
	return found
}

// join reports conflicts of a cluster's assignments with each other and with the residents, if any.
func (r *residents) join(ofCluster []*Assignment, to *clashes) {
	own := make(map[string]*Assignment, len(ofCluster))
	for _, assignment := range ofCluster {
		if r != nil {
			if resident := r.targets[assignment.Target]; resident != nil {
				to.Add(clash{resident, assignment.Target}, assignment)
			}
			if resident := r.namespaces[assignment.Namespace]; resident != nil {
				to.addUnlessShared(resident, assignment)
				continue
			}
		}
		claimNamespace(own, assignment, to)
	}
}

func claimNamespace(namespaces map[string]*Assignment, assignment *Assignment, to *clashes) {
	if first := namespaces[assignment.Namespace]; first != nil {
		to.addUnlessShared(first, assignment)
		return
	}
	namespaces[assignment.Namespace] = assignment
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
