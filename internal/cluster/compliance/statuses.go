package compliance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Creators are the accounts whose commit statuses count: one for all clusters, or one for each; by default all.
type Creators struct {
	All       string
	ByCluster map[string]string
}

// IsSet reports whether some accounts are excluded.
func (c Creators) IsSet() bool { return c.All != "" || c.ByCluster != nil }

// check returns why a status does not count.
func (c Creators) check(cluster, commit string, status forge.Status) string {
	if !c.IsSet() {
		return ""
	}
	wanted, has := c.All, true
	if c.ByCluster != nil {
		wanted, has = c.ByCluster[cluster]
	}
	by := "an unknown account"
	if status.Creator != "" {
		by = fmt.Sprintf("%q", wording.Cut(status.Creator, 100))
	}
	subject := fmt.Sprintf("status %q of commit %.7s is by %s", wording.Cut(status.Context, 100), commit, by)
	switch {
	case !has:
		return subject + ", and creators has no account for this cluster"
	case !forge.SameAccount(status.Creator, wanted):
		return fmt.Sprintf("%s, and only those by %q count for this cluster", subject, wanted)
	}
	return ""
}

// hostStatuses has a cluster's statuses for one kind of host.
type hostStatuses struct {
	counted []observe.ExternalReport // newest first
	// foreign is why a status of the newest commit does not count. It may have replaced one that does: a Git host keeps
	// only the latest status of each context.
	foreign string
	commit  string // newest with a status
}

// add adds a status; newer commits come first.
func (t *hostStatuses) add(commit, foreign string, status forge.Status) {
	if t.commit == "" {
		t.commit = commit
	}
	switch {
	case foreign == "":
		t.counted = append(t.counted, observe.ExternalReport{
			Commit: commit, Verdict: verdictOf(status.State), Since: status.Time, Message: status.Description,
		})
	case commit == t.commit && t.foreign == "":
		t.foreign = foreign
	}
}

func (t *hostStatuses) isReady() bool {
	return t != nil && slices.ContainsFunc(t.counted, func(one observe.ExternalReport) bool { return one.Verdict == verdict.Ready })
}

// byHost has one cluster's statuses by kind of host, "" for both.
type byHost map[string]*hostStatuses

// report converts the statuses. A foreign one makes its host unknown.
func (b byHost) report(clusterType, cluster string) observe.ClusterReport {
	counted, foreign := map[string][]observe.ExternalReport{}, ""
	for _, host := range slices.Sorted(maps.Keys(b)) {
		if b[host].foreign == "" {
			counted[host] = b[host].counted
		} else if foreign == "" {
			foreign = b[host].foreign
		}
	}
	report := observe.ReadStatuses(clusterType, cluster, counted)
	report.Unknown = foreign
	return report
}

func (s *Statuses) groupByCluster(find statusFinder, heard []delivery.CommitStatuses) map[string]byHost {
	all := map[string]byHost{}
	for _, commit := range heard {
		for _, status := range commit.Statuses {
			name, host, ok := find(status)
			if !ok {
				continue
			}
			if all[name] == nil {
				all[name] = byHost{}
			}
			if all[name][host] == nil {
				all[name][host] = &hostStatuses{}
			}
			all[name][host].add(commit.Commit, s.Creators.check(name, commit.Commit, status), status)
		}
	}
	return all
}

// readStatuses reads newest commits first, until every cluster has a status.
func readStatuses(
	ctx context.Context,
	repository GitOpsReader,
	from *Statuses,
	q *Question,
	answer *Answer,
) (map[string]observe.ClusterReport, error) {
	find := from.finder(q.Clusters)
	enough := func(heard []delivery.CommitStatuses) bool {
		count := 0
		for _, hosts := range from.groupByCluster(find, heard) {
			if hosts[""].isReady() || hosts[observe.ClusterTypeHost].isReady() && hosts[observe.ClusterHost].isReady() {
				count++
			}
		}
		return count == len(q.Clusters)
	}
	query := delivery.StatusQuery{Settings: from.Settings, Location: q.Owner.Location, Limit: from.Limit, Creators: from.Creators.IsSet()}
	heard, err := repository.ReadStatuses(ctx, query, enough)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	answer.Statuses = err
	found := map[string]observe.ClusterReport{}
	for name, hosts := range from.groupByCluster(find, heard) {
		found[name] = hosts.report(q.Clusters[name].Type, name)
	}
	return found, nil
}

type statusFinder func(forge.Status) (cluster, host string, ok bool)

// finder matches statuses by context, or by Flux' key on some Git hosts.
func (s *Statuses) finder(clusters map[string]FleetCluster) statusFinder {
	keys := sync.OnceValue(func() map[string]observe.Subject {
		return s.Contexts.Keys(slices.Sorted(maps.Keys(clusters)), forge.StatusKey)
	})
	known := func(name string) bool { _, ok := clusters[name]; return ok }
	return func(status forge.Status) (cluster, host string, ok bool) {
		if status.Key != "" {
			if of, ok := keys()[status.Key]; ok {
				return of.Cluster, of.Host, true
			}
		}
		return s.Contexts.Cluster(status.Context, known)
	}
}
