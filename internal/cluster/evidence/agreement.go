package evidence

import (
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// opinion is the statement of one document about an assignment on a cluster.
type opinion struct {
	verdict.Status
	// source is the name of a check, or "facts"; "" for reports of agents.
	source string
	// wide marks a statement about more than this cluster, which proves no contact with it.
	wide bool
}

// agree merges the opinions of several documents about an assignment on a cluster:
//   - ready if every opinion is ready;
//   - failed if any opinion is failed;
//   - unknown if all statements about this cluster alone are unknown;
//   - progressing, which callers must wait for, if only some are unknown;
//   - otherwise the worst verdict.
//
// The time is the latest known, but for a failure only failures count. Source and message come from the deciding
// opinion.
func agree(opinions []opinion) opinion {
	var own, unknown, ownUnknown int
	var first, worst opinion // of the unknown ones, and of the others
	var latest time.Time
	for _, o := range opinions {
		if o.Verdict == "" {
			o.Verdict = verdict.Unknown
		}
		latest = verdict.Latest(latest, o.Since)
		if !o.wide {
			own++
		}
		if o.Verdict == verdict.Unknown {
			if unknown++; unknown == 1 || first.wide && !o.wide {
				first = o
			}
			if !o.wide {
				ownUnknown++
			}
			continue
		}
		worst = worse(worst, o)
	}
	switch {
	case worst.Verdict == verdict.Failed:
		return worst
	case unknown == len(opinions), own > 0 && ownUnknown == own:
		worst = first
	case unknown > 0 && worst.Verdict == verdict.Ready:
		worst = first
		worst.Verdict = verdict.Progressing
	case unknown > 0:
		worst.Verdict = verdict.Progressing
	}
	worst.Since = latest
	return worst
}

// worse is [verdict.Worst] for opinions; the zero value is none.
func worse(a, b opinion) opinion {
	if a.Verdict == "" {
		return b
	}
	status := verdict.Worst(a.Status, b.Status)
	if status.Verdict != a.Verdict || status.OfRoot != a.OfRoot {
		a = b
	}
	a.Status = status
	return a
}

// suspects attributes a figure of a whole cluster, host or fleet to the written change under way there, unless there
// are several.
type suspects struct {
	byHost, byCluster map[string]suspect
	inFleet           suspect
}

type suspect struct {
	target  string
	several bool
}

func (s suspect) with(other suspect) suspect {
	switch {
	case s.target == "":
		return other
	case other.target == "":
		return s
	}
	return suspect{s.target, s.several || other.several || s.target != other.target}
}

func newSuspects(in rollout.StepInput) *suspects {
	s := &suspects{byHost: map[string]suspect{}, byCluster: map[string]suspect{}}
	if in.State == nil {
		return s
	}
	for name, target := range in.State.Targets {
		for host := range target.Hosts {
			wanted, deployed := in.Wanted[host][name], in.Deployed[host][name]
			if wanted == deployed && in.Hosts[host] != nil {
				s.byHost[host] = s.byHost[host].with(suspect{target: name})
			}
		}
	}
	for host, of := range s.byHost {
		s.inFleet = s.inFleet.with(of)
		for _, cluster := range in.Hosts[host].Clusters {
			s.byCluster[cluster] = s.byCluster[cluster].with(of)
		}
	}
	return s
}

func (s *suspects) blames(of SubjectKind, cluster string, key folder.Key) bool {
	var found suspect
	switch of {
	case OfAssignment:
		return true
	case OfCluster:
		found = s.byCluster[cluster]
	case OfHost:
		found = s.byHost[key.Host]
	case OfFleet:
		found = s.inFleet
	}
	return found.target == key.DeploymentTarget && !found.several
}

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
