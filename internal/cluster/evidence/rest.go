package evidence

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// rests finds hosts for comparison: without the change of a deployment target or, if all have it, proven ones.
type rests struct {
	in    rollout.StepInput
	of    map[string][]hostOf // by deployment target, including removals
	hosts map[string][]string // for comparison, by deployment target
	known map[restOf]*Rest
}

type hostOf struct {
	name string
	has  bool
}

type restOf struct {
	check  *Check
	target string
}

func (r *rests) rest(check *Check, target string) *Rest {
	if check.Of == OfFleet {
		return nil
	}
	asked := restOf{check, target}
	rest, known := r.known[asked]
	if known {
		return rest
	}
	var figures []Figure
	for _, host := range r.hostsOf(target) {
		subjects := r.in.Hosts[host].Clusters
		if check.Of != OfCluster {
			subjects = []string{subjectOf(check, "", folder.Key{Host: host, DeploymentTarget: target})}
		}
		for _, subject := range subjects {
			if figure, ok := check.Figures[subject]; ok {
				figures = append(figures, figure)
			}
		}
	}
	rest = Mean(figures)
	r.known[asked] = rest
	return rest
}

func (r *rests) hostsOf(target string) []string {
	if hosts, known := r.hosts[target]; known {
		return hosts
	}
	if r.of == nil {
		r.of = r.collect()
	}
	var without, proven []string
	var state *rollout.ChangeState
	if r.in.State != nil {
		state = r.in.State.Targets[target]
	}
	for _, host := range r.of[target] {
		switch {
		case !host.has:
			without = append(without, host.name)
		case state != nil && state.Hosts[host.name] != nil && state.Hosts[host.name].Proven:
			proven = append(proven, host.name)
		}
	}
	if len(without) == 0 {
		without = proven
	}
	slices.Sort(without)
	r.hosts[target] = without
	return without
}

func (r *rests) collect() map[string][]hostOf {
	of := map[string][]hostOf{}
	for name := range r.in.Hosts {
		wanted, deployed := r.in.Wanted[name], r.in.Deployed[name]
		for target, tree := range wanted {
			now, is := deployed[target]
			of[target] = append(of[target], hostOf{name, is && now == tree})
		}
		for target := range deployed {
			if _, is := wanted[target]; !is {
				of[target] = append(of[target], hostOf{name, false})
			}
		}
	}
	return of
}

func subjectOf(check *Check, cluster string, key folder.Key) string {
	switch check.Of {
	case OfCluster:
		return cluster
	case OfHost:
		return key.Host
	case OfAssignment:
		return key.String()
	}
	return ""
}
