package overview

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// verdicts computes the verdicts of assignments on clusters.
type verdicts struct {
	*Input
	asked bool // at least one cluster
	// tipMoved: the tip has moved since the evidence, when it had treesThen.
	tipMoved  bool
	treesThen map[string]map[string]string

	followers map[string][]string // clusters by host
	regions   map[string]string   // by cluster
	worst     map[string]verdict.Status
	byRegion  map[string]health.Tally
}

func newVerdicts(in *Input) *verdicts {
	s := &verdicts{
		Input: in, asked: in.Evidence != nil && len(in.Evidence.Clusters) > 0,
		followers: map[string][]string{}, regions: map[string]string{}, worst: map[string]verdict.Status{}, byRegion: map[string]health.Tally{},
	}
	types := map[string]fleet.Labels{}
	for i := range in.Result.Fleet.ClusterTypes {
		types[in.Result.Fleet.ClusterTypes[i].Name] = in.Result.Fleet.ClusterTypes[i].Labels
	}
	for i := range in.Result.Fleet.Clusters {
		cluster := &in.Result.Fleet.Clusters[i]
		for _, host := range observe.FollowedHosts(cluster.ClusterType, cluster.Name) {
			s.followers[host] = append(s.followers[host], cluster.Name)
		}
		s.regions[cluster.Name] = fleet.MergeLabels(types[cluster.ClusterType], cluster.Labels)[in.RegionLabel]
	}
	for _, names := range s.followers {
		slices.Sort(names)
	}
	if s.asked && in.Seen != nil && in.Evidence.Tip != in.Seen.Written.Tip {
		s.tipMoved, s.treesThen = true, in.Seen.Past[in.Evidence.Tip].Trees
	}
	return s
}

type assignmentVerdicts struct {
	any   bool
	runs  []report.Run
	tally health.Tally
}

// ofAssignment returns the worst verdict of an assignment on all clusters, since the earliest time, or the latest if all are
// ready. counts includes them in the scores of regions.
func (s *verdicts) ofAssignment(key folder.Key, counts bool) (worst verdict.Status, found assignmentVerdicts) {
	if !s.asked || !s.isWritten(key) {
		return worst, found
	}
	for _, cluster := range s.followers[key.Host] {
		status := s.onCluster(cluster, key)
		switch order := verdict.Compare(status.Verdict, worst.Verdict); {
		case !found.any || order < 0:
			worst, found.any = status, true
			if status.Message != "" {
				worst.Message = cluster + ": " + status.Message
			}
		case order == 0 && (status.Verdict == verdict.Ready) == status.Since.After(worst.Since):
			worst.Since = status.Since
		}
		found.addRun(s.Evidence.RunningOn(cluster, key.String()))
		var one health.Tally
		one.Add(
			status.Verdict,
			health.Age(status, s.Evidence.Time, cmp.Or(s.Evidence.Assignment(cluster, key.String()).Commit, s.Evidence.Clusters[cluster].Commit)),
		)
		found.tally.Join(one)
		s.note(cluster, status, one, counts)
	}
	slices.SortFunc(found.runs, func(a, b report.Run) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), a.Compare(&b.Running))
	})
	return worst, found
}

func (s *verdicts) note(cluster string, status verdict.Status, one health.Tally, counts bool) {
	if before, ok := s.worst[cluster]; !ok || verdict.Compare(status.Verdict, before.Verdict) < 0 {
		s.worst[cluster] = status
	}
	if region := s.regions[cluster]; counts && region != "" {
		joinTally(s.byRegion, region, one)
	}
}

// isWritten reports whether the branch has a folder, or is unknown.
func (s *verdicts) isWritten(key folder.Key) bool {
	if s.Seen == nil {
		return true
	}
	_, ok := s.Seen.Written.Records[key]
	return ok
}

// onCluster returns the verdict on one cluster. After a change of the folder, the evidence reveals only the content.
func (s *verdicts) onCluster(cluster string, key folder.Key) verdict.Status {
	content := s.Evidence.Assignment(cluster, key.String())
	if !s.tipMoved || !content.Known || content.Verdict == verdict.Unknown {
		return content.Status
	}
	now, then := s.Seen.Written.Trees[key.Host][key.DeploymentTarget], s.treesThen[key.Host][key.DeploymentTarget]
	switch {
	case now == then:
		return content.Status
	case content.Has(now, then):
		return verdict.Status{
			Verdict: verdict.Unknown, Since: s.Evidence.Time, Message: "has the content of the branch, but no report since says whether it is ready",
		}
	}
	return verdict.Status{
		Verdict: verdict.Behind, Since: verdict.Latest(s.Seen.Written.Records[key].Changed, s.Evidence.Time),
		Message: "the branch has newer content than when the cluster was asked",
	}
}

func (f *assignmentVerdicts) addRun(running reconciler.Running) {
	if running == (reconciler.Running{}) {
		return
	}
	at := slices.IndexFunc(f.runs, func(run report.Run) bool { return run.Running == running })
	if at < 0 {
		at = len(f.runs)
		f.runs = append(f.runs, report.Run{Running: running})
	}
	f.runs[at].Clusters++
}

// ofCluster returns the verdict in the evidence, or the worst of its assignments if the branch has newer commits.
func (s *verdicts) ofCluster(name string) (status verdict.Status, ok bool) {
	if !s.asked {
		return status, false
	}
	reported, isReported := s.Evidence.Clusters[name]
	worst, hasWorst := s.worst[name]
	switch {
	case hasWorst && (s.tipMoved || !isReported):
		return worst, true
	case isReported:
		return reported.Status, true
	}
	return verdict.Status{Verdict: verdict.Unknown, Since: s.Evidence.Time, Message: "nothing is known of this cluster"}, true
}
