package evidence

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
