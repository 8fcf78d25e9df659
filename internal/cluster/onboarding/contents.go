package onboarding

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// deletable omits definitions and namespaces with objects of others, which would go with them.
func (r *remover) deletable(ctx context.Context, group []liveRecord) ([]liveRecord, error) {
	if group[0].Stage == agent.Rest {
		return group, nil
	}
	others := make([][]string, len(group))
	var kinds []kube.Resource
	if group[0].Stage == agent.Namespaces {
		all, incomplete, err := listAllKinds(ctx, r.cluster)
		if err != nil {
			return nil, err
		}
		if kinds = all; incomplete {
			for _, one := range group {
				r.note("%s stays: not everything that is in it can be listed", one.ID())
			}
			return nil, nil
		}
	}
	err := forEach(len(group), func(i int) (err error) {
		if group[i].Stage == agent.Definitions {
			others[i], err = listDefined(ctx, r.cluster, group[i].live)
		} else {
			others[i], err = listForeign(ctx, r.cluster, group[i].Name, kinds, nil)
		}
		return err
	})
	var free []liveRecord
	for i, one := range group {
		if len(others[i]) == 0 {
			free = append(free, one)
		} else {
			r.note("%s stays: it has objects of others, which would be removed with it: %s", one.ID(), wording.List(others[i], wording.Named))
		}
	}
	return free, err
}

func listDefined(ctx context.Context, cluster ObjectReader, definition *unstructured.Unstructured) ([]string, error) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var served []string
	for _, one := range versions {
		version, _ := one.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			served = append(served, name)
		}
	}
	if len(served) == 0 {
		return nil, nil
	}
	list, err := cluster.List(
		ctx,
		kube.ResourceKind{Group: group, Versions: strings.Join(served, ","), Resource: plural},
		kube.ListOptions{Skip: notNames},
	)
	return namesOf(list.Items), err
}

// listForeign returns the names of others' objects in a namespace, without objects that Kubernetes or an agent creates.
func listForeign(ctx context.Context, cluster ObjectReader, namespace string, kinds []kube.Resource, b *reconciled) ([]string, error) {
	var found []string
	for _, kind := range kinds {
		if !kind.Namespaced || isTransient(kind) {
			continue
		}
		list, err := cluster.List(ctx, kind.ResourceKind, kube.ListOptions{Namespace: namespace, Skip: notNames})
		if err != nil {
			return nil, err
		}
		items := slices.DeleteFunc(list.Items, func(one *unstructured.Unstructured) bool {
			return len(one.GetOwnerReferences()) > 0 || isTerminating(one) ||
				kind.ObjectKind == "ServiceAccount" &&
					one.GetName() == "default" || kind.ObjectKind == "ConfigMap" && one.GetName() == "kube-root-ca.crt"
		})
		for _, item := range items {
			origin := b.originOf(item)
			if origin == originUnknown {
				live, err := cluster.Read(ctx, kube.RefOf(item))
				isForbidden := kube.ReasonOf(err) == kube.ReasonForbidden // only the list was checked before the first change
				if err != nil && !isForbidden {
					return nil, err
				}
				if isForbidden || live != nil && !isMadeByItself(live, b != nil) {
					origin = fromOthers
				}
			}
			if origin == fromOthers {
				found = append(found, kube.RefOf(item).String())
			}
		}
	}
	return found, nil
}

// isMadeByItself reports whether only the agent, Kubernetes or Flotilla has written an object. Once the agent's own
// objects are gone, objects of Flotilla belong to another agent.
func isMadeByItself(live *unstructured.Unstructured, agentStays bool) bool {
	var managers []string
	for _, entry := range live.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	if reconciler.IsOwn(live.GroupVersionKind().Group, live.GetKind(), live.GetName(), live.GetLabels(), managers) {
		return true
	}
	return len(managers) > 0 && !slices.ContainsFunc(managers, func(manager string) bool {
		switch manager {
		case "kube-controller-manager", "kube-apiserver":
			return false
		case kube.FieldManager:
			return !agentStays
		}
		return true
	})
}

func isTransient(kind kube.Resource) bool {
	return kind.Group == "events.k8s.io" || kind.Group == "metrics.k8s.io" || kind.Group == "coordination.k8s.io" ||
		kind.Group == "discovery.k8s.io" ||
		kind.Group == "" && (kind.ObjectKind == "Event" || kind.ObjectKind == "Endpoints" || kind.ObjectKind == "Pod")
}

// notNames skips all but metadata.
var notNames = map[string][]string{"": {"spec", "status", "data", "stringData", "binaryData", "rules"}}

func namesOf(items []*unstructured.Unstructured) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = kube.RefOf(item).String()
	}
	return names
}
