package onboarding

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
