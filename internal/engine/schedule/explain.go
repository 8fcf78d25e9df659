package schedule

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Unscheduled is a deployment target without a host.
type Unscheduled struct {
	DeploymentTarget  string
	Reason            string // a clause without a subject
	NearestHost       string // host with the fewest failed requirements; may be empty
	FailedRequirement string // first failed requirement of the nearest host or of the target; may be empty
}

// Excluded is an assignment that a policy with effect "exclude" prevented.
type Excluded struct {
	Host             string
	DeploymentTarget string
	Policies         []string
}

// IdlePolicy is a target policy without matching deployment targets or hosts.
type IdlePolicy struct {
	Name   string
	Reason string // a clause about the policy
}

func (s *scheduler) unscheduled(assignments []*Assignment) []Unscheduled {
	scheduled := make(map[*Target]bool, len(s.targets))
	for _, assignment := range assignments {
		scheduled[assignment.Target] = true
	}
	if len(scheduled) == len(s.targets) {
		return nil
	}
	excluded := map[string][]Excluded{}
	for _, one := range s.excluded {
		excluded[one.DeploymentTarget] = append(excluded[one.DeploymentTarget], one)
	}
	selecting := s.policiesByTarget("schedule")
	nearest := map[*policy]nearness{}
	var unscheduled []Unscheduled
	for i, target := range s.targets {
		if scheduled[target] {
			continue
		}
		var why Unscheduled
		switch {
		case s.fleet.Explicit:
			why = Unscheduled{Reason: "is not among the fleet's assignments"}
		case len(excluded[target.Name]) > 0:
			why = explainExcluded(excluded[target.Name])
		case len(selecting[i]) > 0:
			why = s.explainHosts(selecting[i], nearest)
		default:
			why = s.explainUnselected(target)
		}
		why.DeploymentTarget = target.Name
		unscheduled = append(unscheduled, why)
	}
	return unscheduled
}

func explainExcluded(excluded []Excluded) Unscheduled {
	var policies []string
	for _, one := range excluded {
		policies = append(policies, one.Policies...)
	}
	slices.Sort(policies)
	return Unscheduled{
		Reason:      "is excluded by target policy " + strings.Join(wording.Quoted(slices.Compact(policies)), ", "),
		NearestHost: excluded[0].Host,
	}
}

// nearness is the number of failed requirements of the nearest host, 0 if only a taint prevents it.
type nearness struct {
	failures int
	why      Unscheduled
}

// explainHosts explains a target whose policies select no host, by the nearest policy.
func (s *scheduler) explainHosts(policies []*policy, known map[*policy]nearness) Unscheduled {
	best := nearness{failures: math.MaxInt}
	for i, policy := range policies {
		found, ok := known[policy]
		if !ok {
			found = s.nearestHost(policy)
			known[policy] = found
		}
		if i == 0 || found.failures < best.failures {
			best = found
		}
	}
	return best.why
}

// nearestHost explains why a policy has no host, by the first of the nearest ones.
func (s *scheduler) nearestHost(p *policy) nearness {
	if len(p.tainted) > 0 {
		host := s.hosts[p.tainted[0]]
		taint := p.untolerated(host)
		return nearness{0, Unscheduled{
			Reason: fmt.Sprintf("target policy %q selects it and host %q, but does not tolerate the host's taint %s",
				p.Name, host.Name, taint),
			NearestHost: host.Name, FailedRequirement: "taint " + taint.String(),
		}}
	}
	kind := "cluster type"
	if p.ClusterSelector != nil {
		kind = "cluster"
	}
	var nearest *Host
	fewest := math.MaxInt
	for _, host := range s.hosts {
		if fewest == 1 {
			break // the minimum
		}
		if !p.wantsKind(host) {
			continue
		}
		failures := p.clusterType.CountFailed(host.selectable, fewest)
		failures += p.cluster.CountFailed(host.selectable, fewest-failures)
		if failures < fewest {
			nearest, fewest = host, failures
		}
	}
	if nearest == nil {
		return nearness{fewest, Unscheduled{
			Reason: fmt.Sprintf("target policy %q selects it, but environment %q has no %s", p.Name, s.fleet.Environment, kind),
		}}
	}
	failed := append(p.clusterType.Failed(nearest.selectable), p.cluster.Failed(nearest.selectable)...)
	wanted := strings.Trim(p.clusterType.String()+","+p.cluster.String(), ",") // one of the two may be empty
	return nearness{fewest, Unscheduled{
		Reason: fmt.Sprintf("target policy %q selects it, but no %s of environment %q has %s",
			p.Name, kind, s.fleet.Environment, wanted),
		NearestHost: nearest.Name, FailedRequirement: failed[0],
	}}
}

func (s *scheduler) explainUnselected(target *Target) Unscheduled {
	var nearest *policy
	fewest := math.MaxInt
	for _, policy := range s.policies {
		if fewest == 1 {
			break // the minimum
		}
		if policy.excludes() {
			continue
		}
		failures := 0
		if policy.Workspace != "" && policy.Workspace != target.Workload.Workspace {
			failures++
		}
		failures += policy.workload.CountFailed(target.ofWorkload, fewest-failures)
		failures += policy.target.CountFailed(target.selectable, fewest-failures)
		if failures < fewest {
			nearest, fewest = policy, failures
		}
	}
	if nearest == nil {
		return Unscheduled{Reason: fmt.Sprintf("environment %q has no target policy", s.fleet.Environment)}
	}
	failed := nearest.failedBy(target)
	return Unscheduled{
		Reason:            fmt.Sprintf("no target policy selects it; nearest is %q, which wants %s", nearest.Name, failed),
		FailedRequirement: failed,
	}
}

func (p *policy) failedBy(target *Target) string {
	if p.Workspace != "" && p.Workspace != target.Workload.Workspace {
		return "workspace=" + p.Workspace
	}
	return append(p.workload.Failed(target.ofWorkload), p.target.Failed(target.selectable)...)[0]
}

func (s *scheduler) idlePolicies() []IdlePolicy {
	var idle []IdlePolicy
	for _, policy := range s.policies {
		noTarget, noHost := len(policy.targets) == 0, len(policy.hosts) == 0
		var reason string
		switch {
		case !noTarget && !noHost:
			continue
		case policy.contradiction != "":
			reason = "selects nothing: " + policy.contradiction
		case noTarget && noHost && len(policy.tainted) == 0:
			reason = "selects no deployment target and no host"
		case noTarget:
			reason = "selects no deployment target"
		case len(policy.tainted) > 0:
			reason = "tolerates the taints of none of the hosts that it selects"
		default:
			reason = "selects no host"
		}
		idle = append(idle, IdlePolicy{Name: policy.Name, Reason: reason})
	}
	return idle
}

// idleHosts returns hosts without assignments. A cluster inherits its type's.
func (s *scheduler) idleHosts(assignments []*Assignment) []string {
	busy := make(map[string]bool, len(s.hosts))
	for _, assignment := range assignments {
		busy[assignment.Host.Name] = true
	}
	var idle []string
	for _, host := range s.hosts {
		if !busy[host.Name] && (host.Cluster == nil || !busy[host.ClusterType.Name]) {
			idle = append(idle, host.Name)
		}
	}
	return idle
}
