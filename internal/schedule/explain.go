package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Unscheduled is a deployment target that runs nowhere.
type Unscheduled struct {
	DeploymentTarget  string
	Reason            string // a clause without its subject
	NearestHost       string // the host that fails fewest requirements of a policy that selects the target; may be empty
	FailedRequirement string // the first requirement that the nearest host, or the target itself, failed; may be empty
}

// Excluded is an assignment that a policy of effect "exclude" prevented.
type Excluded struct {
	Host             string
	DeploymentTarget string
	Policies         []string
}

// IdlePolicy is a target policy that assigns, or excludes, nothing.
type IdlePolicy struct {
	Name   string
	Reason string // a clause whose subject is the policy
}

// unscheduled explains every target that has no assignment.
func (s *scheduler) unscheduled(assignments []*Assignment) []Unscheduled {
	scheduled := make(map[*Target]bool, len(s.targets))
	for _, assignment := range assignments {
		scheduled[assignment.Target] = true
	}
	excludedBy := map[string][]string{}
	for _, excluded := range s.excluded {
		excludedBy[excluded.DeploymentTarget] = append(excludedBy[excluded.DeploymentTarget], excluded.Policies...)
	}
	var selecting map[int32][]*policy
	nearest := map[*policy]Unscheduled{}
	var unscheduled []Unscheduled
	for i, target := range s.targets {
		if scheduled[target] {
			continue
		}
		if selecting == nil {
			selecting = s.selecting()
		}
		explained := s.explain(target, selecting[int32(i)], excludedBy[target.Name], nearest)
		explained.DeploymentTarget = target.Name
		unscheduled = append(unscheduled, explained)
	}
	return unscheduled
}

// selecting lists the policies that would schedule each target.
func (s *scheduler) selecting() map[int32][]*policy {
	selecting := map[int32][]*policy{}
	for _, policy := range s.policies {
		if policy.Effect != "exclude" {
			for _, target := range policy.targets {
				selecting[target] = append(selecting[target], policy)
			}
		}
	}
	return selecting
}

func (s *scheduler) explain(target *Target, policies []*policy, excludedBy []string, nearest map[*policy]Unscheduled) Unscheduled {
	switch {
	case s.fleet.Explicit:
		return Unscheduled{Reason: "is not among the fleet's assignments"}
	case len(excludedBy) > 0:
		slices.Sort(excludedBy)
		return Unscheduled{Reason: "is excluded by target policy " + quoteAll(slices.Compact(excludedBy))}
	case len(policies) == 0:
		return s.explainUnselected(target)
	}
	best, bestFailures := Unscheduled{}, -1
	for _, policy := range policies {
		explained, ok := nearest[policy]
		if !ok {
			explained = s.explainHosts(policy)
			nearest[policy] = explained
		}
		failures := strings.Count(explained.FailedRequirement, "\n")
		explained.FailedRequirement, _, _ = strings.Cut(explained.FailedRequirement, "\n")
		if bestFailures < 0 || failures < bestFailures {
			best, bestFailures = explained, failures
		}
	}
	return best
}

// explainHosts says why a policy selects no host. The requirements that the nearest host fails are
// joined by newlines.
func (s *scheduler) explainHosts(p *policy) Unscheduled {
	kind := "cluster type"
	if p.ClusterSelector != nil {
		kind = "cluster"
	}
	if len(p.tainted) > 0 {
		host := s.hosts[p.tainted[0]]
		taint := p.untolerated(host)
		return Unscheduled{
			Reason: fmt.Sprintf("target policy %q selects it and host %q, but does not tolerate the host's taint %s",
				p.Name, host.Name, taint),
			NearestHost: host.Name, FailedRequirement: "taint " + taint.String(),
		}
	}
	var nearest *Host
	var failed []string
	for _, host := range s.hosts {
		if !p.kind(host) {
			continue
		}
		failures := append(p.clusterType.Failed(host.selectable), p.cluster.Failed(host.selectable)...)
		if nearest == nil || len(failures) < len(failed) {
			nearest, failed = host, failures
		}
	}
	if nearest == nil {
		return Unscheduled{Reason: fmt.Sprintf("target policy %q selects it, but environment %q has no %s",
			p.Name, s.fleet.Environment, kind)}
	}
	wanted := append([]string{}, p.clusterType.String(), p.cluster.String())
	wanted = slices.DeleteFunc(wanted, func(text string) bool { return text == "" })
	return Unscheduled{
		Reason: fmt.Sprintf("target policy %q selects it, but no %s of environment %q has %s",
			p.Name, kind, s.fleet.Environment, strings.Join(wanted, ",")),
		NearestHost: nearest.Name, FailedRequirement: strings.Join(failed, "\n"),
	}
}

// explainUnselected names the policy that comes closest to selecting the target.
func (s *scheduler) explainUnselected(target *Target) Unscheduled {
	var nearest *policy
	var failed []string
	for _, policy := range s.policies {
		if policy.Effect == "exclude" {
			continue
		}
		var failures []string
		if policy.Workspace != "" && policy.Workspace != target.Workload.Workspace {
			failures = append(failures, "workspace="+policy.Workspace)
		}
		failures = append(failures, policy.workload.Failed(workloadLabels(target))...)
		failures = append(failures, policy.target.Failed(target.selectable)...)
		if nearest == nil || len(failures) < len(failed) {
			nearest, failed = policy, failures
		}
	}
	if nearest == nil {
		return Unscheduled{Reason: fmt.Sprintf("environment %q has no target policy", s.fleet.Environment)}
	}
	return Unscheduled{
		Reason:            fmt.Sprintf("no target policy selects it; nearest is %q, which wants %s", nearest.Name, failed[0]),
		FailedRequirement: failed[0],
	}
}

func (s *scheduler) idlePolicies() []IdlePolicy {
	var idle []IdlePolicy
	for _, policy := range s.policies {
		hosts := len(policy.hosts)
		if policy.Effect == "exclude" {
			hosts += len(policy.tainted)
		}
		var reason string
		switch {
		case len(policy.targets) == 0 && hosts == 0:
			reason = "selects no deployment target and no host"
		case len(policy.targets) == 0:
			reason = "selects no deployment target"
		case hosts == 0 && len(policy.tainted) > 0:
			reason = "tolerates the taints of none of the hosts that it selects"
		case hosts == 0:
			reason = "selects no host"
		default:
			continue
		}
		idle = append(idle, IdlePolicy{Name: policy.Name, Reason: reason})
	}
	return idle
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}
