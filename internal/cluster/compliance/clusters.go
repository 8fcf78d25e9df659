package compliance

import (
	"context"
	"fmt"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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
