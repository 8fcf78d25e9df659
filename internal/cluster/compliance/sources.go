package compliance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// kindsOf returns the kinds to list. It includes suppliers of Secrets only if records name one, because most clusters
// have none.
func kindsOf(name string, folders recorded, hosts []string) []reconciler.ObjectKind {
	listed := reconciler.ListedKinds()
	if one := reconciler.Named(name); one != nil && len(one.Kinds) > 0 {
		listed = one.ListedKinds()
	}
	for _, kind := range reconciler.Suppliers() {
		if slices.ContainsFunc(hosts, func(host string) bool { return folders[host][kind.Kind] }) {
			listed = append(listed, kind)
		}
	}
	return listed
}

type recorded map[string]map[string]bool

func kindsIn(written gitops.OwnerSnapshot) recorded {
	kinds := recorded{}
	for key, record := range written.Records {
		for _, object := range record.Objects {
			if kinds[key.Host] == nil {
				kinds[key.Host] = map[string]bool{}
			}
			kinds[key.Host][object.Kind] = true
		}
	}
	return kinds
}

func queryClusters(ctx context.Context, from *Clusters, at folder.Location, q *Question, answer *Answer) map[string]observe.ClusterReport {
	clusters := q.Clusters
	found := map[string]observe.ClusterReport{}
	reach := map[string]kube.Cluster{}
	for name := range clusters {
		known, ok := from.Reach[name]
		switch {
		case ok:
			reach[name] = known
		case from.Unknown || from.Waiting[name]:
			found[name] = observe.ClusterReport{Unknown: "the connection to the cluster is not known yet"}
		default:
			answer.NotAsked = append(answer.NotAsked, name)
			found[name] = observe.ClusterReport{Unknown: "the provider does not know this cluster: its `clusters` has no entry of this name"}
		}
	}
	slices.Sort(answer.NotAsked)
	if q.Offline != "" {
		return found // their answers could not be evaluated
	}
	folders := kindsIn(answer.Written)
	// To save memory, each answer is evaluated at once.
	query := func(ctx context.Context, name string, client *kube.ClusterClient) (observe.ClusterReport, error) {
		listed, err := listObjects(ctx, client, kindsOf(clusters[name].Reconciler, folders, observe.FollowedHosts(clusters[name].Type, name)))
		if err != nil {
			return observe.ClusterReport{}, err
		}
		return observe.ReadCluster(at, clusters[name].Type, name, listed), nil
	}
	for name, answered := range kube.QueryAll(ctx, reach, from.Options, query) {
		found[name] = answered.Value
		if answered.Err != nil {
			found[name] = observe.ClusterReport{Unknown: answered.Err.Error()}
		}
	}
	return found
}

func queryHub(ctx context.Context, from *Hub, at folder.Location, clusters map[string]FleetCluster) map[string]observe.ClusterReport {
	found := map[string]observe.ClusterReport{}
	all := func(reason string) map[string]observe.ClusterReport {
		for name := range clusters {
			found[name] = observe.ClusterReport{Unknown: reason}
		}
		return found
	}
	if !from.Known {
		return all(fmt.Sprintf("the connection to the hub %q is not known yet", from.Name))
	}
	var listed reconciler.Answer
	err := kube.QueryOne(ctx, from.Reach, from.Options, func(ctx context.Context, client *kube.ClusterClient) (err error) {
		listed, err = listObjects(ctx, client, reconciler.Hub().ListedKinds())
		return err
	})
	if err != nil {
		return all(fmt.Sprintf("the hub %q: %s", from.Name, err))
	}
	types := make(map[string]string, len(clusters))
	for name, cluster := range clusters {
		types[name] = cluster.Type
	}
	return observe.ReadHub(at, types, listed)
}

// listObjects reads all objects of an agent. Unlisted has kinds that are missing or may not be read.
func listObjects(ctx context.Context, client *kube.ClusterClient, kinds []reconciler.ObjectKind) (reconciler.Answer, error) {
	listed := reconciler.Answer{Unlisted: map[string]string{}}
	var forbidden error // about root objects, if these are among the kinds
	named := false
	asked := make([]kube.ResourceKind, len(kinds))
	for i, kind := range kinds {
		asked[i] = kube.ResourceKind{Group: kind.Group, Versions: kind.Versions, Resource: kind.Resource}
	}
	for i, found := range client.ListEach(ctx, asked, kube.ListOptions{Skip: skipped}) {
		kind, err := kinds[i], found.Err
		switch {
		case kube.ReasonOf(err) == kube.ReasonForbidden:
			if forbidden == nil || kind.Is(reconciler.Follows) && !named {
				forbidden, named = err, kind.Is(reconciler.Follows)
			}
			listed.Unlisted[kind.Kind] = err.Error()
		case err != nil:
			return reconciler.Answer{}, err
		case !found.Served:
			listed.Unlisted[kind.Kind] = "the cluster has no " + kind.Resource + "." + kind.Group
		}
		listed.Objects = append(listed.Objects, found.Items...)
	}
	if len(listed.Unlisted) == len(kinds) && forbidden != nil {
		return reconciler.Answer{}, forbidden
	}
	return listed, nil
}

// skipped are long fields that affect no status.
var skipped = map[string][]string{"metadata": {"annotations"}, "spec": {"values", "resources"}, "status": {"inventory"}}

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
