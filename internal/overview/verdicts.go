package overview

import (
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/report"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// verdicts is how the assignments are doing on the clusters that follow their hosts.
type verdicts struct {
	*Input
	asked bool // somebody was
	// tipMoved says that the branch has another tip than when the clusters were asked, and then is what it had.
	tipMoved  bool
	treesThen map[string]map[string]string

	followers map[string][]string // clusters by host
	regions   map[string]string   // by cluster
	worst     map[string]observe.Status
	byRegion  map[string]health.Tally
}

func newVerdicts(in *Input) *verdicts {
	s := &verdicts{
		Input: in, asked: in.Evidence != nil && len(in.Evidence.Clusters) > 0,
		followers: map[string][]string{}, regions: map[string]string{}, worst: map[string]observe.Status{}, byRegion: map[string]health.Tally{},
	}
	types := map[string]fleet.Labels{}
	for i := range in.Result.Fleet.ClusterTypes {
		types[in.Result.Fleet.ClusterTypes[i].Name] = in.Result.Fleet.ClusterTypes[i].Labels
	}
	for i := range in.Result.Fleet.Clusters {
		cluster := &in.Result.Fleet.Clusters[i]
		for _, host := range observe.Hosts(cluster.ClusterType, cluster.Name) {
			s.followers[host] = append(s.followers[host], cluster.Name)
		}
		s.regions[cluster.Name] = fleet.Merge(types[cluster.ClusterType], cluster.Labels)[in.RegionLabel]
	}
	for _, names := range s.followers {
		slices.Sort(names)
	}
	if s.asked && in.Seen != nil && in.Evidence.Tip != in.Seen.Written.Tip {
		s.tipMoved, s.treesThen = true, in.Seen.Past[in.Evidence.Tip].Trees
	}
	return s
}

// assignmentVerdicts are those of one assignment on all clusters.
type assignmentVerdicts struct {
	any    bool
	counts report.Counts
	tally  health.Tally
}

// ofAssignment says how an assignment is doing: the worst of all clusters, with the earliest time of those that are as bad, and
// with the latest where all are ready. What the branch does not have yet is not judged. counts lets it count for regions.
func (s *verdicts) ofAssignment(key rollout.Key, counts bool) (worst observe.Status, found assignmentVerdicts) {
	if !s.asked || !s.isWritten(key) {
		return worst, found
	}
	for _, cluster := range s.followers[key.Host] {
		status := s.onCluster(cluster, key)
		switch order := compareVerdicts(status, worst); {
		case !found.any || order < 0:
			worst, found.any = status, true
			if status.Message != "" {
				worst.Message = cluster + ": " + status.Message
			}
		case order == 0 && (status.Verdict == observe.Ready) == status.Since.After(worst.Since):
			worst.Since = status.Since
		}
		found.add(status.Verdict)
		var one health.Tally
		one.Add(status.Verdict, ageOf(s.Evidence, status))
		found.tally.Join(one)
		s.note(cluster, status, one, counts)
	}
	return worst, found
}

// note keeps what is known of a cluster and its region.
func (s *verdicts) note(cluster string, status observe.Status, one health.Tally, counts bool) {
	if before, ok := s.worst[cluster]; !ok || compareVerdicts(status, before) < 0 {
		s.worst[cluster] = status
	}
	if region := s.regions[cluster]; counts && region != "" {
		tally := s.byRegion[region]
		tally.Join(one)
		s.byRegion[region] = tally
	}
}

// isWritten says whether the branch has a folder. Where it could not be read, what is reported is believed.
func (s *verdicts) isWritten(key rollout.Key) bool {
	if s.Seen == nil {
		return true
	}
	_, ok := s.Seen.Written.Records[key]
	return ok
}

// onCluster says how an assignment is doing on one cluster. Evidence is about what the branch had when the clusters were
// asked; of a folder that has changed since, it tells only what the cluster has.
func (s *verdicts) onCluster(cluster string, key rollout.Key) observe.Status {
	content := s.Evidence.Assignment(cluster, key.String())
	if !s.tipMoved || !content.Known || content.Verdict == observe.Unknown {
		return content.Status
	}
	now, then := s.Seen.Written.Trees[key.Host][key.DeploymentTarget], s.treesThen[key.Host][key.DeploymentTarget]
	switch {
	case now == then:
		return content.Status
	case content.Has(now, then):
		return observe.Status{
			Verdict: observe.Unknown, Since: s.Evidence.Time, Message: "has what the branch has now; whether it is ready was not asked since",
		}
	}
	return observe.Status{
		Verdict: observe.Behind, Since: latest(s.Seen.Written.Records[key].Changed, s.Evidence.Time),
		Message: "the branch has newer content than when the cluster was asked",
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// compareVerdicts orders verdicts: negative where a is worse.
func compareVerdicts(a, b observe.Status) int {
	return slices.Index(observe.Verdicts, a.Verdict) - slices.Index(observe.Verdicts, b.Verdict)
}

func (f *assignmentVerdicts) add(verdict observe.Verdict) {
	switch verdict {
	case observe.Ready:
		f.counts.Ready++
	case observe.Progressing:
		f.counts.Progressing++
	case observe.Behind:
		f.counts.Behind++
	case observe.Failed:
		f.counts.Failed++
	default:
		f.counts.Unknown++
	}
}

// ofCluster is what is known of a cluster: what the evidence says, or the worst of its assignments where the branch has
// gone on since.
func (s *verdicts) ofCluster(name string) (status observe.Status, ok bool) {
	if !s.asked {
		return status, false
	}
	if of, ok := s.Evidence.Clusters[name]; ok && !s.tipMoved {
		return of.Status, true
	}
	if worst, ok := s.worst[name]; ok {
		return worst, true
	}
	if of, ok := s.Evidence.Clusters[name]; ok {
		return of.Status, true
	}
	return observe.Status{Verdict: observe.Unknown, Since: s.Evidence.Time, Message: "nothing is known of this cluster"}, true
}
