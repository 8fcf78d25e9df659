package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Decisions contains all scheduling decisions, with reasons, in sorted lists.
type Decisions struct {
	Hosts        []*Host        // cluster types and clusters, by name
	Targets      []*Target      // deployment targets of the environment, by name
	Assignments  []*Assignment  // by host, then by deployment target
	Unscheduled  []Unscheduled  // by deployment target
	Excluded     []Excluded     // by host and deployment target
	IdlePolicies []IdlePolicy   // by name
	IdleHosts    []string       // hosts without assignments, by name
	Warnings     fleet.Findings // probable mistakes
}

// Schedule assigns deployment targets to hosts. It reports missing required workloads, and
// conflicts on a cluster. Decisions with findings must not be deployed.
func Schedule(f *fleet.Fleet) (*Decisions, fleet.Findings) {
	s := &scheduler{fleet: f, hosts: hostsOf(f), targets: targetsOf(f)}
	var assignments []*Assignment
	if f.Explicit {
		assignments = s.explicitAssignments()
	} else {
		s.evaluate()
		assignments = s.assign()
	}
	s.resolveRequirements(assignments)
	s.checkClusters(assignments)
	return &Decisions{
		Hosts: s.hosts, Targets: s.targets, Assignments: assignments, Excluded: s.excluded,
		Unscheduled: s.unscheduled(assignments), IdlePolicies: s.idlePolicies(), IdleHosts: s.idleHosts(assignments),
		Warnings: s.warnings,
	}, s.findings
}

type scheduler struct {
	fleet    *fleet.Fleet
	hosts    []*Host
	targets  []*Target
	policies []*policy
	excluded []Excluded
	findings fleet.Findings
	warnings fleet.Findings
}

func (s *scheduler) explicitAssignments() []*Assignment {
	assignments := make([]*Assignment, 0, len(s.fleet.Assignments))
	for _, placement := range s.fleet.Assignments {
		name := placement.ClusterType
		if placement.Cluster != "" {
			name = clusterFolder + placement.Cluster
		}
		host, foundHost := slices.BinarySearchFunc(s.hosts, name, func(h *Host, name string) int {
			return cmp.Compare(h.Name, name)
		})
		target, foundTarget := slices.BinarySearchFunc(s.targets, placement.DeploymentTarget, func(t *Target, name string) int {
			return cmp.Compare(t.Name, name)
		})
		if foundHost && foundTarget {
			assignment := s.newAssignment(s.hosts[host], s.targets[target], nil)
			assignments = append(assignments, &assignment)
		}
	}
	slices.SortFunc(assignments, func(a, b *Assignment) int {
		return cmp.Or(cmp.Compare(a.Host.Name, b.Host.Name), cmp.Compare(a.Target.Name, b.Target.Name))
	})
	return assignments
}

func (s *scheduler) newAssignment(host *Host, target *Target, policies []string) Assignment {
	namespace := target.Target.Namespace
	if namespace == "" {
		namespace = Namespace(s.fleet.Environment, host.FirstName(), target.Name)
	}
	return Assignment{Host: host, Target: target, Policies: policies, Namespace: namespace}
}

type scheduledTarget struct {
	target   int32
	policies []string
}

func (s *scheduler) assign() []*Assignment {
	schedulers, excluders := s.policiesByTarget("schedule"), s.policiesByTarget("exclude")
	byHost, count := s.union(schedulers, excluders)
	assignments := make([]*Assignment, 0, count)
	room := make([]Assignment, 0, count) // one allocation
	for i, host := range s.hosts {
		for _, one := range byHost[i] {
			target := s.targets[one.target]
			var by []string
			for _, policy := range excluders[one.target] {
				if policy.hasHost(int32(i)) {
					by = append(by, policy.Name)
				}
			}
			if by != nil {
				s.excluded = append(s.excluded, Excluded{Host: host.Name, DeploymentTarget: target.Name, Policies: by})
				continue
			}
			room = append(room, s.newAssignment(host, target, one.policies))
			assignments = append(assignments, &room[len(room)-1])
		}
	}
	return assignments
}

func (s *scheduler) policiesByTarget(effect string) [][]*policy {
	byTarget := make([][]*policy, len(s.targets))
	for _, policy := range s.policies {
		if policy.excludes() == (effect == "exclude") {
			for _, target := range policy.targets {
				byTarget[target] = append(byTarget[target], policy)
			}
		}
	}
	return byTarget
}

func (s *scheduler) union(schedulers, excluders [][]*policy) (byHost [][]scheduledTarget, count int) {
	byHost = make([][]scheduledTarget, len(s.hosts))
	policies := make([][]string, len(s.hosts)) // of the current target, by host
	var touched []int32
	for target := range s.targets {
		touched = touched[:0]
		for _, policy := range schedulers[target] {
			for _, host := range policy.hostsFor(s.targets[target], excluders[target]) {
				if policies[host] == nil {
					touched = append(touched, host)
					policies[host] = policy.names
				} else {
					policies[host] = append(policies[host], policy.Name)
				}
			}
		}
		for _, host := range touched {
			byHost[host] = append(byHost[host], scheduledTarget{int32(target), policies[host]})
			policies[host] = nil
		}
		count += len(touched)
	}
	return byHost, count
}

// resolveRequirements finds required assignments on the same host or the cluster's type.
func (s *scheduler) resolveRequirements(assignments []*Assignment) {
	type hostWorkload struct{ host, workload string }
	assigned := map[hostWorkload][]*Assignment{}
	required := map[string]bool{}
	for i := range s.fleet.Workloads {
		for _, name := range s.fleet.Workloads[i].Requires {
			required[name] = true
		}
	}
	for _, assignment := range assignments {
		if name := assignment.Target.Workload.Name; required[name] {
			at := hostWorkload{assignment.Host.Name, name}
			assigned[at] = append(assigned[at], assignment)
		}
	}
	var lacking wording.Groups[requirement, *Assignment]
	for _, assignment := range assignments {
		var found []*Assignment
		for _, name := range assignment.Target.Workload.Requires {
			others := assigned[hostWorkload{assignment.Host.Name, name}]
			if assignment.Host.Cluster != nil {
				others = slices.Concat(others, assigned[hostWorkload{assignment.Host.ClusterType.Name, name}])
			}
			if len(others) == 0 {
				lacking.Add(requirement{assignment.Target.Workload.Name, name}, assignment)
			}
			found = append(found, others...)
		}
		// Prefer the cluster's own assignment if its type has the same target, which is an error.
		slices.SortStableFunc(found, func(a, b *Assignment) int { return cmp.Compare(a.Target.Name, b.Target.Name) })
		for _, one := range slices.CompactFunc(found, func(a, b *Assignment) bool { return a.Target == b.Target }) {
			assignment.Requires = append(assignment.Requires, one.Target.Name)
			assignment.Dependencies = append(assignment.Dependencies, Dependency{one.Target, one.Host, one.Namespace})
		}
	}
	s.reportLacking(&lacking)
}

type requirement struct{ workload, required string }

func (s *scheduler) reportLacking(lacking *wording.Groups[requirement, *Assignment]) {
	for pair, assignments := range lacking.All() {
		targets := distinct(assignments, func(one *Assignment) string { return one.Target.Name })
		hosts := distinct(assignments, func(one *Assignment) string { return one.Host.Name })
		are, require := "is", "it requires"
		if len(targets) > 1 {
			are, require = "are", "they require"
		}
		s.findings.Report(fleet.PathOf("workloads", pair.workload).Attribute("requires"),
			"%s %s assigned to %s, but workload %q, which %s, has no deployment target there",
			named("deployment target", targets), are, named("host", hosts), pair.required, require)
	}
}

func distinct(assignments []*Assignment, name func(*Assignment) string) []string {
	names := make([]string, len(assignments))
	for i, one := range assignments {
		names[i] = name(one)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func named(noun string, names []string) string {
	return wording.OneOrMany(len(names), noun, noun+"s") + " " + wording.List(wording.Quoted(names), wording.Named)
}

// checkClusters finds assignments that clash on a cluster, on which the assignments of its cluster type run, too.
func (s *scheduler) checkClusters(assignments []*Assignment) {
	type place struct{ host, namespace string }
	type resident struct {
		clusterType string
		target      *Target
	}
	var clashes wording.Groups[clash, *Assignment]
	places, residents := map[place]*Assignment{}, map[resident]*Assignment{}
	for _, ofClusters := range []bool{false, true} {
		for _, assignment := range assignments {
			host, clusterType := assignment.Host, assignment.Host.ClusterType.Name
			if (host.Cluster != nil) != ofClusters {
				continue
			}
			if first := residents[resident{clusterType, assignment.Target}]; first != nil {
				clashes.Add(clash{first, assignment.Target}, assignment)
			}
			if !ofClusters {
				residents[resident{clusterType, assignment.Target}] = assignment
			}
			first := places[place{clusterType, assignment.Namespace}]
			if first == nil {
				first = places[place{host.Name, assignment.Namespace}]
			}
			switch {
			case first == nil:
				places[place{host.Name, assignment.Namespace}] = assignment
			case first.Target == assignment.Target: // reported as a target that is assigned twice
			case first.Target.Target.Namespace == "" || assignment.Target.Target.Namespace == "":
				clashes.Add(clash{first, assignment.Target}, assignment)
			}
		}
	}
	s.reportClashes(&clashes)
}

type clash struct {
	first  *Assignment
	target *Target
}

func (s *scheduler) reportClashes(clashes *wording.Groups[clash, *Assignment]) {
	for one, seconds := range clashes.All() {
		more := ""
		if len(seconds) > 1 {
			more = fmt.Sprintf(" (and %d more)", len(seconds)-1)
		}
		target := one.target
		path := fleet.TargetPath(target.Workload.Name, target.Target.Name)
		first, second := describeHost(one.first.Host), describeHost(seconds[0].Host)
		if one.first.Target == target {
			s.findings.Report(path,
				"deployment target %q is assigned to %s and to %s%s, where it would run twice: assign it to one of them",
				target.Name, first, second, more)
			continue
		}
		s.findings.Report(path.Attribute("namespace"), "deployment target %q on %s%s would share namespace %q with %q on %s by accident: "+
			"set namespace on one of them, or the same on both", target.Name, second, more, seconds[0].Namespace, one.first.Target.Name, first)
	}
}

func describeHost(host *Host) string {
	if host.Cluster != nil {
		return fmt.Sprintf("cluster %q", host.Cluster.Name)
	}
	return fmt.Sprintf("cluster type %q", host.ClusterType.Name)
}
