package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// Result is every decision about a fleet, and why. Every list is sorted.
type Result struct {
	Hosts        []*Host       // every cluster type and cluster, by name
	Targets      []*Target     // every deployment target of the environment, by name
	Assignments  []*Assignment // by host, then by deployment target
	Unscheduled  []Unscheduled // by deployment target
	Excluded     []Excluded    // by host and deployment target
	IdlePolicies []IdlePolicy  // by name
}

// Schedule assigns deployment targets to hosts. Its findings are selectors that do not compile, and
// requirements that do not land together; with any, the result is not to be deployed.
func Schedule(f *fleet.Fleet) (*Result, fleet.Findings) {
	s := &scheduler{fleet: f, hosts: hostsOf(f), targets: targetsOf(f)}
	s.hostIndex = indexLabels(s.hosts, func(h *Host) fleet.Labels { return h.selectable })
	s.targetIndex = indexLabels(s.targets, func(t *Target) fleet.Labels { return t.selectable })
	for i := range f.TargetPolicies {
		s.policies = append(s.policies, s.evaluate(&f.TargetPolicies[i]))
	}
	var assignments []*Assignment
	if f.Explicit {
		assignments = s.place()
	} else {
		assignments = s.assign()
	}
	s.require(assignments)
	result := &Result{Hosts: s.hosts, Targets: s.targets, Assignments: assignments, Excluded: s.excluded}
	result.Unscheduled = s.unscheduled(assignments)
	result.IdlePolicies = s.idlePolicies()
	return result, s.findings
}

func hostsOf(f *fleet.Fleet) []*Host {
	hosts := make([]*Host, 0, len(f.ClusterTypes)+len(f.Clusters))
	types := make(map[string]*Host, len(f.ClusterTypes))
	for i := range f.ClusterTypes {
		clusterType := &f.ClusterTypes[i]
		host := &Host{
			Name: clusterType.Name, ClusterType: clusterType, Labels: clusterType.Labels, Taints: clusterType.Taints,
			selectable: fleet.Merge(clusterType.Labels, fleet.Labels{
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
		host := &Host{
			Name: "clusters/" + cluster.Name, ClusterType: ofType.ClusterType, Cluster: cluster,
			Labels:     fleet.Merge(ofType.Labels, cluster.Labels),
			Taints:     append(slices.Clone(ofType.Taints), cluster.Taints...),
			selectable: fleet.Merge(ofType.selectable, cluster.Labels, fleet.Labels{"cluster": cluster.Name}),
		}
		host.selectable["environment"], host.selectable["cluster-type"] = f.Environment, cluster.ClusterType
		hosts = append(hosts, host)
	}
	slices.SortFunc(hosts, func(a, b *Host) int { return cmp.Compare(a.Name, b.Name) })
	return hosts
}

func targetsOf(f *fleet.Fleet) []*Target {
	var targets []*Target
	for i := range f.Workloads {
		workload := &f.Workloads[i]
		for j := range workload.DeploymentTargets {
			target := &Target{
				Name:     fleet.FullName(workload.Name, workload.DeploymentTargets[j].Name),
				Workload: workload, Target: &workload.DeploymentTargets[j],
			}
			target.Labels = fleet.Merge(workload.Labels, target.Target.Labels)
			target.selectable = fleet.Merge(target.Labels, fleet.Labels{
				"environment": f.Environment, "workspace": workload.Workspace,
				"workload": workload.Name, "deployment-target": target.Name,
			})
			targets = append(targets, target)
		}
	}
	slices.SortFunc(targets, func(a, b *Target) int { return cmp.Compare(a.Name, b.Name) })
	return targets
}

type scheduler struct {
	fleet       *fleet.Fleet
	hosts       []*Host
	targets     []*Target
	hostIndex   labelIndex
	targetIndex labelIndex
	policies    []*policy
	excluded    []Excluded
	findings    fleet.Findings
}

// policy is a target policy, compiled, and what it selects: indexes into the scheduler's lists.
type policy struct {
	*fleet.TargetPolicy
	workload, target, clusterType, cluster fleet.Requirements

	targets []int32
	hosts   []int32 // that its selectors select and whose taints it tolerates
	tainted []int32 // that its selectors select, but whose taints it does not tolerate
}

// evaluate compiles a policy's selectors once and finds what they select.
func (s *scheduler) evaluate(p *fleet.TargetPolicy) *policy {
	compiled := &policy{TargetPolicy: p}
	for _, selector := range []struct {
		name     string
		selector *fleet.Selector
		compiled *fleet.Requirements
	}{
		{"workload_selector", p.WorkloadSelector, &compiled.workload},
		{"deployment_target_selector", p.DeploymentTargetSelector, &compiled.target},
		{"cluster_type_selector", p.ClusterTypeSelector, &compiled.clusterType},
		{"cluster_selector", p.ClusterSelector, &compiled.cluster},
	} {
		if selector.selector == nil {
			continue
		}
		requirements, findings := selector.selector.Compile()
		*selector.compiled = requirements
		for _, finding := range findings {
			finding.Path = fmt.Sprintf("target_policies[%q].%s.%s", p.Name, selector.name, finding.Path)
			s.findings = append(s.findings, finding)
		}
	}
	for i := range s.targetIndex.candidates(compiled.target) {
		if compiled.selectsTarget(s.targets[i]) {
			compiled.targets = append(compiled.targets, i)
		}
	}
	hostRequirements := compiled.clusterType
	if p.ClusterSelector != nil {
		hostRequirements = compiled.cluster
	}
	for i := range s.hostIndex.candidates(hostRequirements) {
		host := s.hosts[i]
		switch {
		case !compiled.selectsHost(host):
		case compiled.untolerated(host) != nil:
			compiled.tainted = append(compiled.tainted, i)
		default:
			compiled.hosts = append(compiled.hosts, i)
		}
	}
	return compiled
}

func (p *policy) selectsTarget(target *Target) bool {
	return (p.Workspace == "" || p.Workspace == target.Workload.Workspace) &&
		p.target.Matches(target.selectable) &&
		p.workload.Matches(workloadLabels(target))
}

// workloadLabels are what a workload_selector sees.
func workloadLabels(target *Target) fleet.Labels {
	return fleet.Merge(target.Workload.Labels, fleet.Labels{
		"environment": target.selectable["environment"],
		"workspace":   target.Workload.Workspace, "workload": target.Workload.Name,
	})
}

// kind says whether a host is of the kind that the policy selects: its clusters with a
// cluster_selector, else its cluster types.
func (p *policy) kind(host *Host) bool {
	return (p.ClusterSelector != nil) == (host.Cluster != nil)
}

func (p *policy) selectsHost(host *Host) bool {
	return p.kind(host) && p.clusterType.Matches(host.selectable) && p.cluster.Matches(host.selectable)
}

// untolerated returns the first of the host's taints that the policy does not tolerate, or nil.
func (p *policy) untolerated(host *Host) *fleet.Taint {
	for i := range host.Taints {
		tolerated := slices.ContainsFunc(p.Tolerations, func(t fleet.Toleration) bool {
			return t.Tolerates(host.Taints[i])
		})
		if !tolerated {
			return &host.Taints[i]
		}
	}
	return nil
}

// pair is an assignment to be: indexes of a host and a target.
type pair struct{ host, target int32 }

// assign is the union over policies, less what is excluded.
func (s *scheduler) assign() []*Assignment {
	excluders := map[pair][]string{}
	for _, policy := range s.policies {
		if policy.Effect == "exclude" {
			for _, host := range append(slices.Clone(policy.hosts), policy.tainted...) {
				for _, target := range policy.targets {
					excluders[pair{host, target}] = append(excluders[pair{host, target}], policy.Name)
				}
			}
		}
	}
	makers := map[pair]int{}
	var pairs []pair
	var policies [][]string
	for _, policy := range s.policies {
		if policy.Effect == "exclude" {
			continue
		}
		for _, host := range policy.hosts {
			for _, target := range policy.targets {
				at := pair{host, target}
				i, known := makers[at]
				if !known {
					i = len(pairs)
					makers[at] = i
					pairs, policies = append(pairs, at), append(policies, nil)
				}
				policies[i] = append(policies[i], policy.Name)
			}
		}
	}
	order := make([]int, len(pairs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(pairs[a].host, pairs[b].host), cmp.Compare(pairs[a].target, pairs[b].target))
	})
	assignments := make([]*Assignment, 0, len(pairs))
	for _, i := range order {
		host, target := s.hosts[pairs[i].host], s.targets[pairs[i].target]
		if by := excluders[pairs[i]]; by != nil {
			s.excluded = append(s.excluded, Excluded{Host: host.Name, DeploymentTarget: target.Name, Policies: by})
			continue
		}
		assignments = append(assignments, s.newAssignment(host, target, policies[i]))
	}
	return assignments
}

func (s *scheduler) newAssignment(host *Host, target *Target, policies []string) *Assignment {
	return &Assignment{
		Host: host, Target: target, Policies: policies,
		Namespace: Namespace(s.fleet.Environment, host.Name, target.Name),
	}
}

// place takes the assignments that the user computed.
func (s *scheduler) place() []*Assignment {
	assignments := make([]*Assignment, 0, len(s.fleet.Assignments))
	for _, placement := range s.fleet.Assignments {
		name := placement.ClusterType
		if placement.Cluster != "" {
			name = "clusters/" + placement.Cluster
		}
		host, foundHost := slices.BinarySearchFunc(s.hosts, name, func(h *Host, name string) int { return cmp.Compare(h.Name, name) })
		target, foundTarget := slices.BinarySearchFunc(s.targets, placement.DeploymentTarget,
			func(t *Target, name string) int { return cmp.Compare(t.Name, name) })
		if foundHost && foundTarget {
			assignments = append(assignments, s.newAssignment(s.hosts[host], s.targets[target], nil))
		}
	}
	slices.SortFunc(assignments, func(a, b *Assignment) int {
		return cmp.Or(cmp.Compare(a.Host.Name, b.Host.Name), cmp.Compare(a.Target.Name, b.Target.Name))
	})
	return assignments
}

// require finds what each assignment's workload requires on the same host; for a cluster, what its
// cluster type runs is there too.
func (s *scheduler) require(assignments []*Assignment) {
	type place struct{ host, workload string }
	var standing map[place][]string
	for _, assignment := range assignments {
		if len(assignment.Target.Workload.Requires) == 0 {
			continue
		}
		if standing == nil {
			standing = map[place][]string{}
			for _, a := range assignments {
				at := place{a.Host.Name, a.Target.Workload.Name}
				standing[at] = append(standing[at], a.Target.Name)
			}
		}
		for _, required := range assignment.Target.Workload.Requires {
			there := standing[place{assignment.Host.Name, required}]
			if assignment.Host.Cluster != nil {
				there = append(slices.Clone(there), standing[place{assignment.Host.ClusterType.Name, required}]...)
			}
			if len(there) == 0 {
				s.findings = append(s.findings, fleet.Finding{
					Path: fmt.Sprintf("workloads[%q].requires", assignment.Target.Workload.Name),
					Message: fmt.Sprintf("deployment target %q is assigned to host %q, where nothing of workload %q is, which it requires",
						assignment.Target.Name, assignment.Host.Name, required),
				})
			}
			assignment.Requires = append(assignment.Requires, there...)
		}
		slices.Sort(assignment.Requires)
		assignment.Requires = slices.Compact(assignment.Requires)
	}
}

// String names the assignment in messages.
func (a *Assignment) String() string {
	return strings.TrimPrefix(a.Key(), "clusters/")
}
