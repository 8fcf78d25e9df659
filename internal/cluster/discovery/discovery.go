// Package discovery asks clusters what they say of themselves, and a hub which clusters others have registered there. What
// it finds are facts, which package facts makes of objects.
package discovery

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Question says what to ask.
type Question struct {
	Reach   map[string]kube.Cluster // clusters that are asked themselves, by name
	Waiting []string                // names of those of which it is not known yet how to reach them
	Options kube.QueryOptions
	// ReadyPercent is how many percent of a cluster's nodes have to be ready.
	ReadyPercent int
	// Requested says to read what pods request, which are many.
	Requested bool
	Hub       *Hub // nil: none
}

// Hub is a cluster with which others have registered clusters.
type Hub struct {
	Name            string
	Reach           kube.Cluster
	ArgoCD          string // the namespace of its Secrets; "": they are not read
	ClusterProfiles bool
}

// maxRegistered bounds how many clusters a hub may have.
const maxRegistered = 20_000

// Ask asks all clusters and the hub. A cluster that does not answer is no error. A hub that does not answer is one, since it
// is not known which clusters it has. unusable are objects of the hub that have no name that a cluster can have.
func Ask(ctx context.Context, q Question) (known map[string]facts.Known, unusable []string, err error) {
	var registered []facts.Registration
	if q.Hub != nil {
		if registered, unusable, err = q.Hub.ask(ctx, q.Options); err != nil {
			return nil, nil, err
		}
	}
	own := map[string]facts.Known{}
	for name, answer := range kube.QueryAll(ctx, q.Reach, q.Options, q.ask) {
		if answer.Err != nil {
			answer.Value.Lost = answer.Err.Error()
		}
		own[name] = answer.Value.Known(q.ReadyPercent)
	}
	for _, name := range q.Waiting {
		status := verdict.Status{Verdict: verdict.Unknown, Message: "the connection to the cluster is not known yet"}
		own[name] = facts.Known{Waiting: true, Sources: []facts.Source{facts.Cluster}, ClusterFacts: evidence.ClusterFacts{Status: status}}
	}
	return facts.Together(own, registered, q.Hub.sources()), unusable, nil
}

var (
	nodes = kube.ResourceKind{Versions: "v1", Resource: "nodes"}
	pods  = kube.ResourceKind{Versions: "v1", Resource: "pods"}
)

// What is long and no fact.
var (
	skippedOfNodes = map[string][]string{"metadata": {"annotations"}, "status": {"images"}}
	skippedOfPods  = map[string][]string{
		"metadata": {"annotations", "labels", "ownerReferences"}, "spec": {"volumes", "tolerations", "affinity"},
		"containers": skippedOfContainers, "initContainers": skippedOfContainers,
		"status": {"conditions", "containerStatuses", "initContainerStatuses"},
	}
	skippedOfContainers = []string{
		"env",
		"args",
		"command",
		"volumeMounts",
		"livenessProbe",
		"readinessProbe",
		"startupProbe",
		"securityContext",
	}
)

// ask asks one cluster. It keeps no object, so that a large cluster takes hardly more memory than a small one.
func (q *Question) ask(ctx context.Context, _ string, client *kube.ClusterClient) (own facts.Own, err error) {
	questions := []struct {
		right string
		ask   func() error
	}{
		{facts.RightVersion, func() (err error) {
			own.Version, err = client.ServerVersion(ctx)
			return err
		}},
		{facts.RightNodes, func() (err error) {
			var isServed bool
			if own.Nodes, isServed, err = folded(ctx, client, nodes, kube.ListOptions{Skip: skippedOfNodes}, facts.NewNodes, (*facts.Nodes).Add); err == nil &&
				!isServed {
				own.Lost = "the API server has no nodes"
			}
			return err
		}},
		{facts.RightPods, func() (err error) {
			own.Pods, _, err = folded(
				ctx,
				client,
				pods,
				kube.ListOptions{FieldSelector: facts.PodSelector, Skip: skippedOfPods},
				facts.NewPods,
				(*facts.Pods).Add,
			)
			return err
		}},
	}
	if !q.Requested {
		questions = questions[:2]
	}
	errs := make([]error, len(questions))
	answered := kube.InTurn(len(questions), func(i int) error {
		errs[i] = questions[i].ask()
		return errs[i]
	})
	for i := range answered {
		switch {
		case kube.ReasonOf(errs[i]) == kube.ReasonForbidden: // a right that is missing ends nothing
			own.Forbidden = append(own.Forbidden, questions[i].right)
		case errs[i] != nil:
			return own, errs[i]
		}
	}
	return own, nil
}

// folded is what the objects of a kind come to, each of which is added; nil where they are not served, or were not read to the
// end.
func folded[T any](
	ctx context.Context,
	client *kube.ClusterClient,
	kind kube.ResourceKind,
	options kube.ListOptions,
	begin func() *T,
	add func(*T, *unstructured.Unstructured),
) (all *T, isServed bool, err error) {
	options.Fold = func() func(*unstructured.Unstructured) {
		all = begin() // anew where the list is begun anew
		return func(object *unstructured.Unstructured) { add(all, object) }
	}
	listed, err := client.List(ctx, kind, options)
	if err != nil || !listed.Served {
		all = nil
	}
	return all, listed.Served, err
}
