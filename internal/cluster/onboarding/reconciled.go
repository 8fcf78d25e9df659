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

// reconciled are the objects that the agent has applied on the cluster: those that the root objects have applied, and
// those that Kustomizations and Applications among them have applied in turn. Root objects follow the folders.
type reconciled struct {
	// all has the objects with their API group in place of group and version, since lists may have another version, and how
	// what has applied them removes them.
	all map[kube.Ref]reconciler.Removal
	// awaited are those for whose deletion what has applied them does not wait, as Flux does not.
	awaited []kube.Ref
}

func (b *reconciled) has(ref kube.Ref) bool {
	_, has := b.all[withGroup(ref)]
	return has
}

func withGroup(ref kube.Ref) kube.Ref {
	ref.APIVersion = ref.Group()
	return ref
}

// collect finds what root objects on the cluster have applied. What a hub's have applied is on another cluster.
func (r *remover) collect(ctx context.Context, roots []liveRecord) (*reconciled, error) {
	b := &reconciled{all: map[kube.Ref]reconciler.Removal{}}
	for _, root := range roots {
		if root.OnHub {
			continue
		}
		if err := r.follow(ctx, root.live, b, 0); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(b.awaited, func(a, b kube.Ref) int { return strings.Compare(a.String(), b.String()) })
	return b, nil
}

// maxDepth is how many levels of Kustomizations and Applications are followed.
const maxDepth = 5

// follow collects the objects in the inventory of an object, and in the inventories of Kustomizations and Applications
// among them, as far as these remove what they have applied when they are deleted.
func (r *remover) follow(ctx context.Context, live *unstructured.Unstructured, b *reconciled, depth int) error {
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
		child, err := r.cluster.Read(ctx, ref)
		if kube.ReasonOf(err) == kube.ReasonNoKind {
			continue // another kind of this name
		}
		if err == nil {
			err = r.follow(ctx, child, b, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// origin says who has applied an object, as far as its name and labels show.
type origin int

const (
	originUnknown  origin = iota
	fromReconciled        // it is one of the reconciled objects, or of their Helm releases, and is removed with them
	fromOthers            // an object that is not removed has applied it
)

// originOf says who has applied an object.
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
		if kind.Removal.Inventory == nil && b.has(by) { // an inventory has all that an object has applied
			return fromReconciled
		}
		found = fromOthers
	}
	return found
}

// keepNamespacesInUse marks the namespaces that have objects of others in them, so that the agent does not remove them
// and these objects with them. Namespaces that deployment targets set by name are marked already.
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
	kinds, incomplete, err := r.allKinds(ctx)
	if err != nil {
		return err
	}
	kept, reasons := make([]bool, len(names)), make([]string, len(names))
	err = each(len(names), func(i int) (err error) {
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

// removalOf says how what has applied a namespace removes it.
func (b *reconciled) removalOf(namespace string) reconciler.Removal {
	return b.all[kube.Ref{Kind: "Namespace", Name: namespace}]
}

// allKinds returns the kinds of the cluster. It asks again where some are missing: a definition may have changed just now.
func (r *remover) allKinds(ctx context.Context) (kinds []kube.Resource, incomplete bool, err error) {
	for try := 1; ; try++ {
		kinds, incomplete, err = r.cluster.Resources(ctx)
		if err != nil || !incomplete || try == kindAttempts || wait.For(ctx, time.Second) != nil {
			return kinds, incomplete, err
		}
	}
}

// keepIfInUse marks a namespace that has objects of others in it, and says why. kept says that it was marked before.
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
		others, err := r.objectsIn(ctx, name, kinds, b)
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

// untilAllGone waits until the reconciled objects are removed, except those that are marked to stay.
func (r *remover) untilAllGone(ctx context.Context, b *reconciled) error {
	left := b.awaited
	err := poll(ctx, func() (bool, error) {
		still := make([]bool, len(left))
		err := each(len(left), func(i int) error {
			live, err := r.cluster.Read(ctx, left[i])
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
		return overdue(ctx, names[0], "what the agent had applied is still there: "+wording.List(names, wording.Named), err)
	}
	return nil
}
