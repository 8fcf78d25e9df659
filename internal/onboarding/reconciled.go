package onboarding

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// reconciled are the objects that the agent has applied on the cluster: those that the root objects have applied, and
// those that Kustomizations and Applications among them have applied in turn. Root objects follow the folders.
type reconciled struct {
	// all has the objects with their API group in place of group and version, since lists may have another version.
	all map[kube.Ref]bool
	// awaited are those for whose deletion what has applied them does not wait, as Flux does not.
	awaited []kube.Ref
	// argo says that Argo CD removes some of them.
	argo bool
}

func withGroup(ref kube.Ref) kube.Ref {
	ref.APIVersion = ref.Group()
	return ref
}

// collect finds what root objects on the cluster have applied. What a hub's have applied is on another cluster.
func (r *remover) collect(ctx context.Context, roots []liveRecord) (*reconciled, error) {
	b := &reconciled{all: map[kube.Ref]bool{}}
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
	b.argo = b.argo || live.GetKind() == "Application"
	for _, one := range removal.Inventory(live) {
		version := schema.GroupVersion{Group: one.Group, Version: one.Version}
		ref := kube.Ref{APIVersion: version.String(), Kind: one.Kind, Namespace: one.Namespace, Name: one.Name}
		if b.all[withGroup(ref)] {
			continue
		}
		b.all[withGroup(ref)] = true
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
	if b.all[withGroup(kube.RefOf(object))] {
		return fromReconciled
	}
	labels := object.GetLabels()
	if name := labels["helm.toolkit.fluxcd.io/name"]; name != "" {
		release := kube.Ref{APIVersion: "helm.toolkit.fluxcd.io", Kind: "HelmRelease", Namespace: labels["helm.toolkit.fluxcd.io/namespace"], Name: name}
		if b.all[release] {
			return fromReconciled
		}
		return fromOthers
	}
	if labels["kustomize.toolkit.fluxcd.io/name"] != "" || object.GetAnnotations()["argocd.argoproj.io/tracking-id"] != "" {
		return fromOthers
	}
	return originUnknown
}

const (
	fluxPrune   = "kustomize.toolkit.fluxcd.io/prune"
	argoOptions = "argocd.argoproj.io/sync-options"
	helmPolicy  = "helm.sh/resource-policy"
)

// keptByFlux says whether an object has the mark that keeps Flux from pruning it.
func keptByFlux(live *unstructured.Unstructured) bool {
	return strings.EqualFold(live.GetAnnotations()[fluxPrune], "disabled") || strings.EqualFold(live.GetLabels()[fluxPrune], "disabled")
}

// keptByArgo says whether an object has a mark for which Argo CD leaves it where it is when its Application goes.
func keptByArgo(live *unstructured.Unstructured) bool {
	annotations := live.GetAnnotations()
	return slices.Contains(optionsOf(annotations[argoOptions]), "Delete=false") || annotations[helmPolicy] == "keep"
}

func optionsOf(text string) []string {
	var options []string
	for _, option := range strings.Split(text, ",") {
		if option = strings.TrimSpace(option); option != "" {
			options = append(options, option)
		}
	}
	return options
}

// keepPatch is the merge patch after which no agent removes an object.
func keepPatch(live *unstructured.Unstructured) map[string]any {
	options := optionsOf(live.GetAnnotations()[argoOptions])
	for _, option := range []string{"Prune=false", "Delete=false"} {
		if !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		fluxPrune: "disabled", argoOptions: strings.Join(options, ","),
	}}}
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
	kept, reasons, errs := make([]bool, len(names)), make([]string, len(names)), make([]error, len(names))
	kube.Each(len(names), func(i int) { kept[i], reasons[i], errs[i] = r.keepIfInUse(ctx, names[i], b, kinds, incomplete) })
	var marked []string
	isNew := false
	for i := range names {
		switch {
		case errs[i] != nil:
			return errs[i]
		case kept[i]:
			marked = append(marked, names[i])
		case reasons[i] != "":
			isNew = true
			r.note("Namespace %s stays: %s", names[i], reasons[i])
		}
	}
	for _, name := range marked {
		r.note("Namespace %s stays: it is marked so that agents leave it, as is every namespace that a deployment target sets by name", name)
	}
	if isNew && b.argo {
		return wait.For(ctx, argoMarkDelay)
	}
	return nil
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

// argoMarkDelay is how long to wait after marking, until Argo CD has seen the mark: it decides by what it saw last.
const argoMarkDelay = 2 * time.Second

// keepIfInUse marks a namespace that has objects of others in it, and says why. kept says that it was marked before.
func (r *remover) keepIfInUse(ctx context.Context, name string, b *reconciled, kinds []kube.Resource, incomplete bool) (kept bool, why string, err error) {
	ref := kube.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
	live, err := r.cluster.Read(ctx, ref)
	switch {
	case err != nil, live == nil, isTerminating(live):
		return false, "", err
	case b.argo && keptByArgo(live), !b.argo && keptByFlux(live):
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
	_, err = r.cluster.Patch(ctx, ref, keepPatch(live))
	return false, why, err
}

// untilAllGone waits until the reconciled objects are removed, except those that are marked to stay.
func (r *remover) untilAllGone(ctx context.Context, b *reconciled) error {
	left := b.awaited
	err := poll(ctx, func() (bool, error) {
		still, errs := make([]bool, len(left)), make([]error, len(left))
		kube.Each(len(left), func(i int) {
			live, err := r.cluster.Read(ctx, left[i])
			still[i], errs[i] = live != nil && (isTerminating(live) || !keptByFlux(live)), err
		})
		var next []kube.Ref
		for i := range left {
			if errs[i] != nil {
				return false, errs[i]
			}
			if still[i] {
				next = append(next, left[i])
			}
		}
		left = next
		return len(left) == 0, nil
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
