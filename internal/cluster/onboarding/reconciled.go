package onboarding

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// reconciled has the objects that the agent has applied: by root objects, and by Kustomizations and Applications among
// them.
type reconciled struct {
	// all maps objects to the removal of the object that applied them. Keys have no version, because lists may have
	// another one.
	all map[kube.Ref]reconciler.Removal
	// awaited are objects whose owner does not wait for their deletion, as in Flux.
	awaited []kube.Ref
}

func (b *reconciled) has(ref kube.Ref) bool {
	_, has := b.all[withGroup(ref)]
	return has
}

func withGroup(ref kube.Ref) kube.Ref {
	ref.APIVersion = schema.GroupVersion{Group: ref.Group()}.String()
	return ref
}

func collectReconciled(ctx context.Context, cluster ObjectReader, roots []liveRecord) (*reconciled, error) {
	b := &reconciled{all: map[kube.Ref]reconciler.Removal{}}
	for _, root := range roots {
		if root.OnHub {
			continue
		}
		if err := followInventory(ctx, cluster, root.live, b, 0); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(b.awaited, func(a, b kube.Ref) int { return strings.Compare(a.String(), b.String()) })
	return b, nil
}

const maxDepth = 5

// followInventory collects an inventory, and the inventories of Kustomizations and Applications in it.
func followInventory(ctx context.Context, cluster ObjectReader, live *unstructured.Unstructured, b *reconciled, depth int) error {
	if live == nil {
		return nil
	}
	removal := reconciler.RemovalOf(live.GetKind())
	if removal.Inventory == nil || depth > maxDepth || depth > 0 && !removal.Removes(live) {
		return nil
	}
	for _, one := range removal.Inventory(live) {
		version := schema.GroupVersion{Group: one.Group, Version: one.Version}
		ref := kube.Ref{APIVersion: version.String(), Kind: one.Kind, Namespace: one.Namespace, Name: one.Name}
		if b.has(ref) {
			continue
		}
		b.all[withGroup(ref)] = removal
		if !removal.Waits {
			b.awaited = append(b.awaited, ref)
		}
		if reconciler.RemovalOf(ref.Kind).Inventory == nil {
			continue
		}
		child, err := cluster.Read(ctx, ref)
		if kube.ReasonOf(err) == kube.ReasonNoKind {
			continue // another kind with this name
		}
		if err == nil {
			err = followInventory(ctx, cluster, child, b, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// origin is the object's creator, according to names and labels.
type origin int

const (
	originUnknown  origin = iota
	fromReconciled        // or of their Helm releases; removed with them
	fromOthers            // applied by an object that stays
)

func (b *reconciled) originOf(object *unstructured.Unstructured) origin {
	if b == nil {
		return originUnknown
	}
	if b.has(kube.RefOf(object)) {
		return fromReconciled
	}
	found := originUnknown
	for _, kind := range reconciler.Kinds() {
		namespace, name, applied := kind.Applied(object)
		if !applied {
			continue
		}
		by := kube.Ref{APIVersion: kind.Group + "/", Kind: kind.Kind, Namespace: namespace, Name: name}
		if kind.Removal.Inventory == nil && b.has(by) {
			return fromReconciled
		}
		found = fromOthers
	}
	return found
}

func (r *remover) keepNamespacesInUse(ctx context.Context, b *reconciled) error {
	var names []string
	for ref := range b.all {
		if ref.Kind == "Namespace" && ref.Group() == "" {
			names = append(names, ref.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	kinds, incomplete, err := listAllKinds(ctx, r.cluster)
	if err != nil {
		return err
	}
	kept, reasons := make([]bool, len(names)), make([]string, len(names))
	err = forEach(len(names), func(i int) (err error) {
		kept[i], reasons[i], err = r.keepIfInUse(ctx, names[i], b, kinds, incomplete)
		return err
	})
	if err != nil {
		return err
	}
	delay := time.Duration(0)
	for i, name := range names {
		if reasons[i] != "" {
			delay = max(delay, b.removalOf(name).Delay)
			r.note("Namespace %s stays: %s", name, reasons[i])
		}
	}
	for i, name := range names {
		if kept[i] {
			r.note("Namespace %s stays: it is marked so that agents leave it, as is every namespace that a deployment target sets by name", name)
		}
	}
	return wait.For(ctx, delay)
}

func (b *reconciled) removalOf(namespace string) reconciler.Removal {
	return b.all[kube.Ref{Kind: "Namespace", Name: namespace}]
}

// listAllKinds retries while kinds are missing, because a definition may have just changed.
func listAllKinds(ctx context.Context, cluster ObjectReader) (kinds []kube.Resource, incomplete bool, err error) {
	for try := 1; ; try++ {
		kinds, incomplete, err = cluster.Resources(ctx)
		if err != nil || !incomplete || try == kindAttempts || wait.For(ctx, time.Second) != nil {
			return kinds, incomplete, err
		}
	}
}

// keepIfInUse marks a namespace with objects of others. kept reports an earlier mark.
func (r *remover) keepIfInUse(
	ctx context.Context,
	name string,
	b *reconciled,
	kinds []kube.Resource,
	incomplete bool,
) (kept bool, why string, err error) {
	ref := kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
	live, err := r.cluster.Read(ctx, ref)
	switch {
	case err != nil, live == nil, isTerminating(live):
		return false, "", err
	case b.removalOf(name).Kept(live):
		return true, "", nil
	}
	why = "not everything that is in it can be listed"
	if !incomplete {
		others, err := listForeign(ctx, r.cluster, name, kinds, b)
		switch {
		case err == nil && len(others) == 0:
			return false, "", nil
		case err == nil:
			why = "it has objects of others, which would be removed with it: " + wording.List(others, wording.Named)
		case kube.ReasonOf(err) != kube.ReasonForbidden:
			return false, "", err
		}
	}
	if _, err = r.cluster.Patch(ctx, ref, reconciler.RetainPatch(live)); err == nil {
		r.changes.add("Namespace %s was marked to stay", name)
	}
	return false, why, err
}

func untilAllGone(ctx context.Context, cluster ObjectReader, b *reconciled) error {
	left := b.awaited
	err := poll(ctx, func() (bool, error) {
		still := make([]bool, len(left))
		err := forEach(len(left), func(i int) error {
			live, err := cluster.Read(ctx, left[i])
			still[i] = err != nil || live != nil && (isTerminating(live) || !b.all[withGroup(left[i])].Kept(live))
			return err
		})
		var next []kube.Ref
		for i := range left {
			if still[i] {
				next = append(next, left[i])
			}
		}
		left = next
		return len(left) == 0, err
	})
	if err != nil {
		names := make([]string, len(left))
		for i := range left {
			names[i] = left[i].String()
		}
		return timeoutError(ctx, names[0], "what the agent had applied is still there: "+wording.List(names, wording.Named), err)
	}
	return nil
}

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
	var names []string
	for _, item := range list.Items {
		names = append(names, kube.RefOf(item).String())
	}
	return names, err
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
