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

// Creators are the accounts of a Git host whose commit statuses count: one for all clusters, or one for each. The zero value
// lets the statuses of every account count.
type Creators struct {
	All       string
	ByCluster map[string]string
}

// IsSet reports whether the statuses of some accounts do not count.
func (c Creators) IsSet() bool { return c.All != "" || c.ByCluster != nil }

// check returns why a status of a cluster does not count; "" if it does.
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

// told are the commit statuses of one cluster about one kind of host.
type told struct {
	said []observe.ExternalReport // that count, the newest first
	// foreign is why a status does not count that is of the newest commit with any; "" if all of these count. It may have
	// replaced one that counts, as a Git host keeps the latest of each context.
	foreign string
	commit  string // the newest with a status
}

// tell adds a status of a commit; newer commits come first.
func (t *told) tell(commit, foreign string, status forge.Status) {
	if t.commit == "" {
		t.commit = commit
	}
	switch {
	case foreign == "":
		t.said = append(t.said, observe.ExternalReport{Commit: commit, Verdict: verdictOf(status.State), Since: status.Time, Message: status.Description})
	case commit == t.commit && t.foreign == "":
		t.foreign = foreign
	}
}

// isReady reports whether a success counts.
func (t *told) isReady() bool {
	return t != nil && slices.ContainsFunc(t.said, func(one observe.ExternalReport) bool { return one.Verdict == verdict.Ready })
}

// byHost are the statuses of one cluster by the kind of host, "" for both kinds.
type byHost map[string]*told

// report makes a report of them. Hosts with a foreign status are unknown.
func (b byHost) report(clusterType, cluster string) observe.ClusterReport {
	counted, foreign := map[string][]observe.ExternalReport{}, ""
	for _, host := range slices.Sorted(maps.Keys(b)) {
		if b[host].foreign == "" {
			counted[host] = b[host].said
		} else if foreign == "" {
			foreign = b[host].foreign
		}
	}
	report := observe.ReadStatuses(clusterType, cluster, counted)
	report.Unknown = foreign
	return report
}

// heardOf groups statuses by cluster.
func (s *Statuses) heardOf(find statusFinder, heard []delivery.CommitStatuses) map[string]byHost {
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
				all[name][host] = &told{}
			}
			all[name][host].tell(commit.Commit, s.Creators.check(name, commit.Commit, status), status)
		}
	}
	return all
}

// askStatuses reads commit statuses, from the newest commit back, until every cluster has one.
func askStatuses(
	ctx context.Context,
	repository Repository,
	from *Statuses,
	q *Question,
	answer *Answer,
) (map[string]observe.ClusterReport, error) {
	find := from.finder(q.Clusters)
	enough := func(heard []delivery.CommitStatuses) bool {
		count := 0
		for _, hosts := range from.heardOf(find, heard) {
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
	for name, hosts := range from.heardOf(find, heard) {
		found[name] = hosts.report(q.Clusters[name].Type, name)
	}
	return found, nil
}

// statusFinder returns the cluster that a status is of, and the kind of the host that it is about.
type statusFinder func(forge.Status) (cluster, host string, ok bool)

// finder finds by the key, which is what Flux makes of the context on some Git hosts, else by the context.
func (s *Statuses) finder(clusters map[string]Cluster) statusFinder {
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
