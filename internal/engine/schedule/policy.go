package schedule

import (
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// policy is a compiled target policy with its matches: sorted indexes into the scheduler's lists.
type policy struct {
	*fleet.TargetPolicy
	workload, target, clusterType, cluster fleet.Requirements

	chooser       *chooser // nil selects every host
	names         []string // its own name, shared by assignments of this policy alone
	contradiction string   // reason why a selector can never match, or empty
	targets       []int32
	hosts         []int32 // scheduled or excluded
	tainted       []int32 // selected, but with a taint that it does not tolerate
}

func (s *scheduler) evaluate() {
	hosts := indexLabels(s.hosts, func(h *Host) fleet.Labels { return h.selectable })
	targets := indexLabels(s.targets, func(t *Target) fleet.Labels { return t.selectable })
	workloads := indexLabels(s.targets, func(t *Target) fleet.Labels { return t.ofWorkload })
	allHosts, allTargets := everything(len(s.hosts)), everything(len(s.targets))
	for i := range s.fleet.TargetPolicies {
		p := s.compile(&s.fleet.TargetPolicies[i])
		for _, i := range workloads.narrow(targets.narrow(allTargets, p.target), p.workload) {
			target := s.targets[i]
			if (p.Workspace == "" || p.Workspace == target.Workload.Workspace) && target.Meets(p.workload, p.target) {
				p.targets = append(p.targets, i)
			}
		}
		for _, i := range hosts.narrow(hosts.narrow(allHosts, p.clusterType), p.cluster) {
			switch host := s.hosts[i]; {
			case !p.wantsKind(host) || !host.Meets(p.clusterType) || !host.Meets(p.cluster):
			case !p.excludes() && p.untolerated(host) != nil:
				p.tainted = append(p.tainted, i)
			default:
				p.hosts = append(p.hosts, i)
			}
		}
		if p.Placement != nil && !p.excludes() {
			p.chooser = s.newChooser(p)
			if wanted := p.Placement.NumberOfHosts; wanted > len(p.hosts) && len(p.hosts) > 0 {
				s.warnings.Report(fleet.PathOf("target_policies", p.Name).Attribute("placement").Attribute("number_of_hosts"),
					"wants %d hosts, but the policy selects %d: all of them are used", wanted, len(p.hosts))
			}
		}
		s.policies = append(s.policies, p)
	}
}

// hostsFor returns the policy's hosts for a target. It never chooses excluded hosts.
func (p *policy) hostsFor(target *Target, excluders []*policy) []int32 {
	if p.chooser == nil {
		return p.hosts
	}
	hosts := p.hosts
	if len(excluders) > 0 {
		hosts = slices.DeleteFunc(slices.Clone(hosts), func(host int32) bool {
			return slices.ContainsFunc(excluders, func(excluder *policy) bool { return excluder.hasHost(host) })
		})
	}
	return p.chooser.choose(hosts, target)
}

func (s *scheduler) compile(p *fleet.TargetPolicy) *policy {
	compiled := &policy{TargetPolicy: p, names: []string{p.Name}}
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
		requirements, _ := selector.selector.Compile() // the decoder reports findings
		*selector.compiled = requirements
		if contradiction := requirements.Contradiction(); contradiction != "" && compiled.contradiction == "" {
			compiled.contradiction = fmt.Sprintf("its %s can never match: %s", selector.name, contradiction)
		}
	}
	return compiled
}

func (p *policy) excludes() bool {
	return p.Effect == "exclude"
}

func (p *policy) hasHost(host int32) bool {
	_, found := slices.BinarySearch(p.hosts, host)
	return found
}

// wantsKind reports whether the policy selects this kind of host: clusters if it has a cluster_selector.
func (p *policy) wantsKind(host *Host) bool {
	return (p.ClusterSelector != nil) == (host.Cluster != nil)
}

func (p *policy) untolerated(host *Host) *fleet.Taint {
	for i := range host.Taints {
		tolerates := func(t fleet.Toleration) bool { return t.Tolerates(host.Taints[i]) }
		if !slices.ContainsFunc(p.Tolerations, tolerates) {
			return &host.Taints[i]
		}
	}
	return nil
}

type labelIndex map[label][]int32

type label struct{ key, value string }

func indexLabels[T any](objects []T, labels func(T) fleet.Labels) labelIndex {
	index := labelIndex{}
	for i, object := range objects {
		for key, value := range labels(object) {
			at := label{key, value}
			index[at] = append(index[at], int32(i))
		}
	}
	return index
}

func everything(size int) []int32 {
	all := make([]int32, size)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// narrow returns the objects with the rarest required label, a superset of the matching ones.
func (x labelIndex) narrow(all []int32, requirements fleet.Requirements) []int32 {
	fewest := len(all)
	var key string
	var values []string
	for wantedKey, wantedValues := range requirements.Wanted {
		count := 0
		for _, value := range wantedValues {
			count += len(x[label{wantedKey, value}])
		}
		if count < fewest {
			fewest, key, values = count, wantedKey, wantedValues
		}
	}
	switch {
	case fewest == len(all):
		return all
	case len(values) == 1:
		return x[label{key, values[0]}]
	}
	narrowed := make([]int32, 0, fewest)
	for _, value := range values {
		narrowed = append(narrowed, x[label{key, value}]...)
	}
	slices.Sort(narrowed)
	return narrowed
}
