package compliance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
)

// agentKind is a kind of objects that an agent has.
type agentKind struct {
	name string
	kube.Kind
}

func kind(name, group, versions, resource string) agentKind {
	return agentKind{name, kube.Kind{Group: group, Versions: versions, Resource: resource}}
}

// agentKinds are what is listed on a cluster, by its reconciler.
var agentKinds = map[string][]agentKind{
	"flux": {
		kind("Kustomization", "kustomize.toolkit.fluxcd.io", "v1,v1beta2", "kustomizations"),
		kind("HelmRelease", "helm.toolkit.fluxcd.io", "v2,v2beta2", "helmreleases"),
		kind("GitRepository", "source.toolkit.fluxcd.io", "v1,v1beta2", "gitrepositories"),
		kind("OCIRepository", "source.toolkit.fluxcd.io", "v1,v1beta2", "ocirepositories"),
		kind("HelmRepository", "source.toolkit.fluxcd.io", "v1,v1beta2", "helmrepositories"),
	},
	"argocd": {kind("Application", "argoproj.io", "v1alpha1", "applications")},
	"fleet": {
		kind("GitRepo", "fleet.cattle.io", "v1alpha1", "gitrepos"),
		kind("HelmOp", "fleet.cattle.io", "v1alpha1", "helmops"),
		kind("Bundle", "fleet.cattle.io", "v1alpha1", "bundles"),
		kind("BundleDeployment", "fleet.cattle.io", "v1alpha1", "bundledeployments"),
	},
}

// kindsOf are those of a reconciler; of one that is the user's own, all.
func kindsOf(reconciler string) []agentKind {
	if kinds, ok := agentKinds[reconciler]; ok {
		return kinds
	}
	var all []agentKind
	for _, name := range slices.Sorted(maps.Keys(agentKinds)) {
		all = append(all, agentKinds[name]...)
	}
	return all
}

// askClusters asks every cluster of the fleet that the provider knows.
func askClusters(ctx context.Context, from *Clusters, at observe.Location, q *Question, answer *Answer) map[string]observe.Report {
	clusters := q.Clusters
	found := map[string]observe.Report{}
	reach := map[string]kube.Cluster{}
	for name := range clusters {
		known, ok := from.Reach[name]
		switch {
		case ok:
			reach[name] = known
		case from.Unknown || from.Waiting[name]:
			found[name] = observe.Report{Unknown: "the connection to the cluster is not known yet"}
		default:
			answer.NotAsked = append(answer.NotAsked, name)
			found[name] = observe.Report{Unknown: "the provider does not know this cluster: its `clusters` has no entry of this name"}
		}
	}
	slices.Sort(answer.NotAsked)
	if q.Offline != "" {
		return found // their answers could not be evaluated
	}
	// The answer of a cluster is evaluated at once, so that not all answers are kept in memory.
	answers := kube.Ask(ctx, reach, from.Options, func(ctx context.Context, name string, client *kube.Client) (observe.Report, error) {
		listed, err := list(ctx, client, kindsOf(clusters[name].Reconciler))
		if err != nil {
			return observe.Report{}, err
		}
		return observe.ReadCluster(at, clusters[name].Type, name, listed), nil
	})
	for name, answered := range answers {
		found[name] = answered.Value
		if answered.Err != nil {
			found[name] = observe.Report{Unknown: answered.Err.Error()}
		}
	}
	return found
}

// askHub asks one cluster about all others.
func askHub(ctx context.Context, from *Hub, at observe.Location, clusters map[string]Cluster) map[string]observe.Report {
	found := map[string]observe.Report{}
	all := func(reason string) map[string]observe.Report {
		for name := range clusters {
			found[name] = observe.Report{Unknown: reason}
		}
		return found
	}
	if !from.Known {
		return all(fmt.Sprintf("the connection to the hub %q is not known yet", from.Name))
	}
	answers := kube.Ask(ctx, map[string]kube.Cluster{from.Name: from.Reach}, from.Options,
		func(ctx context.Context, _ string, client *kube.Client) (observe.Listed, error) {
			return list(ctx, client, agentKinds["argocd"])
		})
	answered := answers[from.Name]
	if answered.Err != nil {
		return all(fmt.Sprintf("the hub %q: %s", from.Name, answered.Err))
	}
	types := make(map[string]string, len(clusters))
	for name, cluster := range clusters {
		types[name] = cluster.Type
	}
	return observe.ReadHub(at, types, answered.Value)
}

// list reads all objects of an agent. Kinds that the cluster does not have, or does not let us read, are in
// Unlisted.
func list(ctx context.Context, client *kube.Client, kinds []agentKind) (observe.Listed, error) {
	listed := observe.Listed{Unlisted: map[string]string{}}
	var forbidden error
	asked := make([]kube.Kind, len(kinds))
	for i, kind := range kinds {
		asked[i] = kind.Kind
	}
	for i, found := range client.ListEach(ctx, asked, kube.ListOptions{Trim: trim}) {
		kind, err := kinds[i], found.Err
		switch {
		case kube.ReasonOf(err) == kube.ReasonForbidden:
			forbidden = err
			listed.Unlisted[kind.name] = err.Error()
		case err != nil:
			return observe.Listed{}, err
		case !found.Served:
			listed.Unlisted[kind.name] = "the cluster has no " + kind.Resource + "." + kind.Group
		}
		listed.Objects = append(listed.Objects, found.Items...)
	}
	if len(listed.Unlisted) == len(kinds) && forbidden != nil {
		return observe.Listed{}, forbidden
	}
	return listed, nil
}

// trim removes what is long and says nothing about the status of an object.
func trim(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	unstructured.RemoveNestedField(object.Object, "spec", "values")
	unstructured.RemoveNestedField(object.Object, "spec", "resources")
	unstructured.RemoveNestedField(object.Object, "status", "inventory")
	unstructured.RemoveNestedField(object.Object, "status", "summary", "images")
}
