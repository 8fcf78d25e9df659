// Package discovery queries clusters, and a hub where they are registered, for facts.
package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Question names the clusters to query.
type Question struct {
	Reach        map[string]kube.Cluster // by name
	Waiting      []string                // without a known connection
	Options      kube.QueryOptions
	ReadyPercent int  // share of a cluster's nodes that must be ready
	Requested    bool // includes the requests of pods, which are many
	Hub          *Hub // nil: none
}

// Hub is a cluster where others have registered clusters.
type Hub struct {
	Name            string
	Reach           kube.Cluster
	ArgoCD          string // namespace of its Secrets; "": they are not read
	ClusterProfiles bool
}

const maxRegistered = 20_000

// Discover queries all clusters and the hub. Only a hub without an answer is an error, because its clusters are
// unknown. unusable lists objects of the hub whose names clusters cannot have.
func Discover(ctx context.Context, q Question) (known map[string]facts.KnownFacts, unusable []string, err error) {
	var registered []facts.Registration
	if q.Hub != nil {
		if registered, unusable, err = q.Hub.query(ctx, q.Options); err != nil {
			return nil, nil, err
		}
	}
	own := map[string]facts.KnownFacts{}
	for name, answer := range kube.QueryAll(ctx, q.Reach, q.Options, q.query) {
		if answer.Err != nil {
			answer.Value.Lost = answer.Err.Error()
		}
		own[name] = answer.Value.Known(q.ReadyPercent)
	}
	for _, name := range q.Waiting {
		status := verdict.Status{Verdict: verdict.Unknown, Message: "the connection to the cluster is not known yet"}
		own[name] = facts.KnownFacts{Waiting: true, Sources: []facts.Source{facts.Cluster}, ClusterFacts: evidence.ClusterFacts{Status: status}}
	}
	return facts.Merge(own, registered, q.Hub.sources()), unusable, nil
}

var (
	nodes = kube.ResourceKind{Versions: "v1", Resource: "nodes"}
	pods  = kube.ResourceKind{Versions: "v1", Resource: "pods"}
)

// Long fields that are not facts.
var (
	skippedOfNodes = map[string][]string{"metadata": {"annotations"}, "status": {"images"}}
	skippedOfPods  = map[string][]string{
		"metadata": {"annotations", "labels", "ownerReferences"}, "spec": {"volumes", "tolerations", "affinity"},
		"containers": skippedOfContainers, "initContainers": skippedOfContainers,
		"status": {"conditions", "containerStatuses", "initContainerStatuses"},
	}
	skippedOfContainers = []string{
		"env", "args", "command", "volumeMounts", "livenessProbe", "readinessProbe", "startupProbe", "securityContext",
	}
)

// query queries one cluster. It retains no object, so a large one takes hardly more memory.
func (q *Question) query(ctx context.Context, _ string, client *kube.ClusterClient) (own facts.OwnFacts, err error) {
	requests := []struct {
		right   string
		request func() error
	}{
		{facts.RightVersion, func() (err error) {
			own.Version, err = client.ServerVersion(ctx)
			return err
		}},
		{facts.RightNodes, func() (err error) {
			var isServed bool
			options := kube.ListOptions{Skip: skippedOfNodes}
			own.Nodes, isServed, err = foldObjects(ctx, client, nodes, options, facts.NewNodes, (*facts.Nodes).Add)
			if err == nil && !isServed {
				own.Lost = "the API server has no nodes"
			}
			return err
		}},
		{facts.RightPods, func() (err error) {
			options := kube.ListOptions{FieldSelector: facts.PodSelector, Skip: skippedOfPods}
			own.Pods, _, err = foldObjects(ctx, client, pods, options, facts.NewPods, (*facts.Pods).Add)
			return err
		}},
	}
	if !q.Requested {
		requests = requests[:2]
	}
	errs := make([]error, len(requests))
	answered := kube.InTurn(len(requests), func(i int) error {
		errs[i] = requests[i].request()
		return errs[i]
	})
	for i := range answered {
		switch {
		case kube.ReasonOf(errs[i]) == kube.ReasonForbidden: // a missing permission does not stop the query
			own.Forbidden = append(own.Forbidden, requests[i].right)
		case errs[i] != nil:
			return own, errs[i]
		}
	}
	return own, nil
}

// foldObjects adds up the objects of a kind; nil if incomplete.
func foldObjects[T any](
	ctx context.Context,
	client *kube.ClusterClient,
	kind kube.ResourceKind,
	options kube.ListOptions,
	begin func() *T,
	add func(*T, *unstructured.Unstructured),
) (all *T, isServed bool, err error) {
	options.Fold = func() func(*unstructured.Unstructured) {
		all = begin() // restarts with the list
		return func(object *unstructured.Unstructured) { add(all, object) }
	}
	listed, err := client.List(ctx, kind, options)
	if err != nil || !listed.Served {
		all = nil
	}
	return all, listed.Served, err
}

type registrationKind struct {
	source  facts.Source
	kind    kube.ResourceKind
	options kube.ListOptions
	read    func(*unstructured.Unstructured) (facts.Registration, bool)
}

func (h *Hub) kinds() (kinds []registrationKind) {
	if h == nil {
		return nil
	}
	if h.ArgoCD != "" {
		kinds = append(kinds, registrationKind{
			facts.ArgoCD, kube.ResourceKind{Versions: "v1", Resource: "secrets"},
			kube.ListOptions{
				Namespace: h.ArgoCD, LabelSelector: reconciler.Hub().Agent.Registers,
				Skip: map[string][]string{"metadata": {"annotations"}, "data": {"config"}}, // they contain credentials
			}, facts.ReadSecret,
		})
	}
	if h.ClusterProfiles {
		kinds = append(kinds, registrationKind{
			facts.ClusterProfiles, kube.ResourceKind{Group: "multicluster.x-k8s.io", Versions: "v1alpha1", Resource: "clusterprofiles"},
			kube.ListOptions{
				Skip: map[string][]string{"metadata": {"annotations"}, "status": {"credentialProviders", "accessProviders"}},
			}, facts.ReadClusterProfile,
		})
	}
	return kinds
}

func (h *Hub) sources() (sources []facts.Source) {
	for _, kind := range h.kinds() {
		sources = append(sources, kind.source)
	}
	return sources
}

// query reads the clusters of the hub. Of a Secret, it retains only the result of facts.ReadSecret.
func (h *Hub) query(ctx context.Context, options kube.QueryOptions) (found []facts.Registration, unusable []string, err error) {
	err = kube.QueryOne(ctx, h.Reach, options, func(ctx context.Context, client *kube.ClusterClient) error {
		for _, kind := range h.kinds() {
			var registered []facts.Registration
			var nameless []string
			kind.options.Fold = func() func(*unstructured.Unstructured) {
				registered, nameless = nil, nil
				return func(object *unstructured.Unstructured) {
					if one, ok := kind.read(object); ok && len(registered) <= maxRegistered {
						registered = append(registered, one)
					} else if !ok && len(nameless) <= maxRegistered {
						nameless = append(nameless, one.Object)
					}
				}
			}
			if _, err := client.List(ctx, kind.kind, kind.options); err != nil {
				return err
			}
			found, unusable = append(found, registered...), append(unusable, nameless...)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("the hub %q: %w", h.Name, err)
	case len(found) > maxRegistered:
		return nil, nil, fmt.Errorf("the hub %q has more than %d clusters", h.Name, maxRegistered)
	}
	slices.SortFunc(found, func(a, b facts.Registration) int { return strings.Compare(a.Object, b.Object) })
	slices.Sort(unusable)
	return found, unusable, nil
}
