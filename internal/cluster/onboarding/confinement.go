package onboarding

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Unconfined lists the controllers of an agent on a cluster that lack arguments which confine them, each by a clause.
// forbidden reports that the credentials may not list Deployments. The agent's namespace is searched apart from the rest of
// the cluster: there the labels of a Deployment do not matter.
func Unconfined(
	ctx context.Context, cluster Cluster, confinement *reconciler.Confinement, namespace string,
) (lacks []string, forbidden bool, err error) {
	kind := kube.Kind{Group: "apps", Versions: "v1", Resource: "deployments"}
	seen := map[string]bool{}
	for _, options := range []kube.ListOptions{{LabelSelector: confinement.Selector}, {Namespace: namespace}} {
		found, err := cluster.List(ctx, kind, options)
		if kube.ReasonOf(err) == kube.ReasonForbidden {
			forbidden = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		for _, deployment := range found.Items {
			if name := deployment.GetNamespace() + "/" + deployment.GetName(); !seen[name] {
				seen[name] = true
				if missing := confinement.Missing(deployment); len(missing) > 0 {
					lacks = append(lacks, reconciler.DescribeMissing(deployment, missing))
				}
			}
		}
	}
	return lacks, forbidden && len(seen) == 0, nil
}
