package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

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
