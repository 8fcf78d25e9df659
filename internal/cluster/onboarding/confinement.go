package onboarding

import (
	"context"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// FindUnconfined lists the controllers of an agent that lack confining arguments, each as a clause. forbidden reports
// that the credentials may not list Deployments. In the agent's namespace, labels do not matter.
func FindUnconfined(
	ctx context.Context, cluster ClusterAPI, confinement *reconciler.Confinement, namespace string,
) (lacks []string, forbidden bool, err error) {
	kind := kube.ResourceKind{Group: "apps", Versions: "v1", Resource: "deployments"}
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
