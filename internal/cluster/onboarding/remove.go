package onboarding

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Removal describes the removal of an agent's objects.
type Removal struct {
	Name string // of the cluster on hubs

	Records []Record
	UID     string // of the records' cluster; others are left alone
	// Delete also removes the agent and everything it has applied. Otherwise everything keeps running without root
	// objects and credentials.
	Delete bool
}

// Removed describes a removal, complete or failed.
type Removed struct {
	Notes   []string // sentences about objects that were not removed, with the reason
	Changes []string // in order, as in "Secret a/b was deleted"
}

// Remove removes an agent's objects. It first checks that the credentials permit all changes.
func Remove(ctx context.Context, cluster ClusterAPI, removal Removal) (Removed, error) {
	uid, err := identify(ctx, cluster, removal.UID, removal.Records)
	if err != nil {
		return Removed{}, err
	}
	if removal.UID != "" && removal.UID != uid {
		return Removed{Notes: []string{"another cluster has taken its place, and nothing on that one is touched"}}, nil
	}
	scope := removalScope{mark: markOf(uid), name: removal.Name, removeAll: removal.Delete}
	r := &remover{removalScope: scope, cluster: cluster}
	return r.planAndRemove(ctx, removal.Records)
}

func (r *remover) planAndRemove(ctx context.Context, records []Record) (Removed, error) {
	planned, err := r.plan(ctx, records)
	if err == nil {
		err = r.remove(ctx, planned)
	}
	return Removed{r.notes, r.changes.list}, err
}

// formerOf returns the objects of the last apply that are no longer wanted, and a remover for them. It keeps everything
// that they have applied: another object may follow the same folders now.
func formerOf(cluster ClusterAPI, wanted Wanted, look Inspection) (*remover, []Record) {
	scope := removalScope{mark: markOf(look.UID), name: nameOf(wanted.Objects), removeAll: true, keepsContent: true}
	r := &remover{removalScope: scope, cluster: cluster}
	if wanted.UID == "" || wanted.UID != look.UID {
		return r, nil
	}
	objects := byID(wanted.Objects)
	return r, slices.DeleteFunc(slices.Clone(wanted.Records), func(record Record) bool { return objects[record.ID()] != nil })
}

// nameOf returns the cluster label of the objects.
func nameOf(objects []agent.StagedObject) string {
	for i := range objects {
		if name := objects[i].GetLabels()[reconciler.ClusterLabel]; name != "" {
			return name
		}
	}
	return ""
}

type remover struct {
	removalScope
	cluster ClusterAPI
	notes   []string
	changes changeList
}

type removalScope struct {
	mark string // see markOf
	name string // of the cluster
	// removeAll includes more than root objects and isRemovedAlways.
	removeAll bool
	// keepsContent keeps what the agent has applied.
	keepsContent bool
}

type changeList struct {
	mu   sync.Mutex
	list []string
}

func (c *changeList) add(format string, arguments ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, arguments...))
}

func (r *remover) note(format string, arguments ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, arguments...))
}

type liveRecord struct {
	*Record
	live *unstructured.Unstructured
}

// plannedRemoval has the objects to remove, read before the first change.
type plannedRemoval struct {
	released    []liveRecord // they lose the fields that Flotilla has set
	roots, rest []liveRecord
	left        *reconciled // by the roots, and removed with them
}

// removesContent reports whether the removal includes what the agent has applied.
func (r *removalScope) removesContent() bool { return r.removeAll && !r.keepsContent }

// plan reads the objects to remove and checks that the credentials permit it.
func (r *remover) plan(ctx context.Context, records []Record) (*plannedRemoval, error) {
	p := &plannedRemoval{left: &reconciled{}}
	lives := make([]*unstructured.Unstructured, len(records))
	err := forEach(len(records), func(i int) (err error) {
		lives[i], err = r.cluster.Read(ctx, records[i].Ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	var released, ours []liveRecord
	for i := range records {
		one := liveRecord{&records[i], lives[i]}
		if one.live == nil {
			continue
		}
		if (r.releases(one.Record) || !r.removeAll && len(one.Merged) > 0) && !isTerminating(one.live) {
			released = append(released, one)
		}
		if r.isOurs(one) {
			ours = append(ours, one)
		}
	}
	if p.released, err = r.withoutShared(ctx, released); err != nil {
		return nil, err
	}
	if ours, err = r.withoutShared(ctx, ours); err != nil {
		return nil, err
	}
	for _, one := range ours {
		switch {
		case one.Part == agent.Root:
			p.roots = append(p.roots, one)
		case r.removeAll || isRemovedAlways(one.Record):
			p.rest = append(p.rest, one)
		}
	}
	if r.removesContent() {
		if p.left, err = collectReconciled(ctx, r.cluster, p.roots); err != nil {
			return nil, err
		}
	}
	return p, r.checkRights(ctx, p)
}

func (r *remover) remove(ctx context.Context, p *plannedRemoval) error {
	if err := r.release(ctx, p.released); err != nil {
		return err
	}
	if r.removesContent() {
		if err := r.unregister(ctx, slices.Concat(p.rest, p.released)); err != nil {
			return err
		}
		if err := r.keepNamespacesInUse(ctx, p.left); err != nil {
			return err
		}
	}
	roots, rest, left := p.roots, p.rest, p.left
	// Before the first deletion, pruning is off for all root objects, or on for all.
	if err := r.prepare(ctx, roots); err != nil {
		return err
	}
	if err := r.delete(ctx, roots); err != nil {
		return err
	}
	if err := untilAllGone(ctx, r.cluster, left); err != nil {
		return err
	}
	slices.SortStableFunc(rest, func(a, b liveRecord) int {
		return cmp.Or(cmp.Compare(b.Stage, a.Stage), cmp.Compare(b.Part.Order(), a.Part.Order()))
	})
	for len(rest) > 0 {
		count := 1
		for count < len(rest) && rest[count].Stage == rest[0].Stage && rest[count].Part == rest[0].Part {
			count++
		}
		group, err := r.deletable(ctx, rest[:count])
		if err == nil {
			err = r.delete(ctx, group)
		}
		if err != nil {
			return err
		}
		rest = rest[count:]
	}
	return nil
}

// isRemovedAlways selects credentials, sources that use them, and feedback. An Argo CD project stays, because others'
// Applications may use it.
func isRemovedAlways(record *Record) bool {
	return record.Part == agent.Credential || record.Part == agent.Feedback || record.Part == agent.Source && reconciler.IsSource(record.Kind)
}

// isOurs reports whether Flotilla has created an object that nobody has replaced.
func (r *remover) isOurs(one liveRecord) bool {
	label := one.live.GetLabels()[reconciler.ClusterLabel]
	switch {
	case one.Partial:
	case r.name != "" && label != "" && label != render.LabelValue(r.name):
		r.note("%s stays: it is of cluster %q now", one.ID(), wording.OneLine(label))
	case one.Created && one.UID == string(one.live.GetUID()) || createdHere(one.live, r.mark):
		return true
	case one.Created:
		r.note("%s stays: it was made again by others", one.ID())
	case one.Part == agent.Root:
		r.note("%s stays, and goes on: it was there before", one.ID())
	}
	return false
}

func (r *remover) release(ctx context.Context, found []liveRecord) error {
	for _, one := range found {
		own := ownData(one.live)
		if !r.releases(one.Record) {
			maps.DeleteFunc(own, func(key string, _ any) bool { return !slices.Contains(one.Merged, key) })
		}
		patch := map[string]any{"data": own}
		if labels := ownLabels(one.live); one.Partial && len(labels) > 0 {
			if !r.removeAll {
				labels = map[string]any{reconciler.AgentLabel: nil}
				r.note("%s keeps the labels by which the hub deploys to the cluster", one.ID())
			}
			patch["metadata"] = map[string]any{"labels": labels}
		} else if len(own) == 0 {
			continue
		}
		if _, err := r.cluster.Patch(ctx, one.Ref, patch); err != nil {
			return err
		}
		r.changes.add("%s lost what Flotilla had set in it", one.ID())
	}
	return nil
}

func (r *removalScope) releases(record *Record) bool {
	return record.Partial && (r.removeAll || isRemovedAlways(record))
}

// unregister removes the labels of type and environment, so that Flotilla's ApplicationSets no longer select the
// cluster and remove their content while the hub can still reach it. It does not touch others' ApplicationSets.
func (r *remover) unregister(ctx context.Context, rest []liveRecord) error {
	kind := hubsKind()
	isMaker := func(owner metav1.OwnerReference) bool {
		return reconciler.KindNamed(owner.Kind).MakesKind(kind.Kind)
	}
	for _, one := range rest {
		if !r.registers(one) {
			continue
		}
		labels := map[string]any{reconciler.TypeLabel: nil, reconciler.EnvironmentLabel: nil}
		if !one.Partial { // release has removed them
			if _, err := r.cluster.Patch(ctx, one.Ref, map[string]any{"metadata": map[string]any{"labels": labels}}); err != nil {
				return err
			}
			r.changes.add("%s lost its labels", one.ID())
		}
		var left []string
		err := poll(ctx, func() (bool, error) {
			list, err := r.cluster.List(ctx, listedAs(kind), kube.ListOptions{Namespace: one.Namespace})
			if err != nil {
				return false, err
			}
			left = nil
			for _, live := range list.Items {
				name, _, _ := unstructured.NestedString(live.Object, strings.Split(kind.Destination, ".")...)
				if name == r.name && slices.ContainsFunc(live.GetOwnerReferences(), isMaker) &&
					live.GetLabels()[reconciler.ManagedLabel] == reconciler.ManagedBy {
					left = append(left, kube.RefOf(live).String())
				}
			}
			return len(left) == 0, nil
		})
		if err != nil {
			text := "what the hub has applied to the cluster is still there: " + wording.List(left, wording.Named)
			return timeoutError(ctx, "", fmt.Sprintf("%s; if the cluster is gone for good, delete %s, and apply again", text, one.ID()), err)
		}
	}
	return nil
}

func (r *removalScope) registers(one liveRecord) bool {
	label, value, _ := strings.Cut(reconciler.Hub().Agent.Registers, "=")
	return r.removesContent() && one.OnHub && one.live.GetLabels()[label] == value && !isTerminating(one.live)
}

// withoutShared omits objects that agents of other clusters in the same namespace need, too.
func (r *remover) withoutShared(ctx context.Context, found []liveRecord) ([]liveRecord, error) {
	at := slices.IndexFunc(found, func(one liveRecord) bool { return one.Shared })
	if at < 0 {
		return found, nil
	}
	clusters, err := r.cluster.List(ctx, kube.ResourceKind{Versions: "v1", Resource: "secrets"}, kube.ListOptions{
		Namespace:     found[at].Namespace,
		LabelSelector: reconciler.Hub().Agent.Registers + "," + reconciler.AgentLabel, Skip: map[string][]string{"": {"data"}},
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(one liveRecord) bool {
		return one.Shared && slices.ContainsFunc(clusters.Items, func(other *unstructured.Unstructured) bool {
			labels := other.GetLabels()
			sameType := one.Type == "" ||
				labels[reconciler.TypeLabel] == one.Type && (one.Environment == "" || labels[reconciler.EnvironmentLabel] == one.Environment)
			return labels[reconciler.ClusterLabel] != render.LabelValue(r.name) && sameType && other.GetDeletionTimestamp() == nil
		})
	}), nil
}

// prepare turns pruning off or on, and waits until root objects and the objects they generate show it.
func (r *remover) prepare(ctx context.Context, roots []liveRecord) error {
	change := reconciler.KeepPatch
	if r.removesContent() {
		change = reconciler.PrunePatch
	}
	for _, root := range roots {
		if isTerminating(root.live) {
			continue
		}
		err := poll(ctx, func() (bool, error) { return r.applyChange(ctx, root.Ref, change) })
		if err == nil {
			err = poll(ctx, func() (bool, error) { return r.applyToGenerated(ctx, root, change) })
		}
		if err != nil {
			return timeoutError(ctx, root.ID().String(), root.ID().String()+": pruning was not changed in time", err)
		}
	}
	return nil
}

// applyChange patches an object and reports whether it already had the change.
func (r *remover) applyChange(ctx context.Context, ref kube.Ref, change func(*unstructured.Unstructured) map[string]any) (bool, error) {
	live, err := r.cluster.Read(ctx, ref)
	if err != nil || live == nil || isTerminating(live) {
		return err == nil, err
	}
	patch := change(live)
	if patch == nil {
		return true, nil
	}
	if _, err = r.cluster.Patch(ctx, ref, patch); err == nil {
		r.changes.add("%s was set to %s", ref, r.effect())
	}
	return false, err
}

func (r *removalScope) effect() string {
	if r.removesContent() {
		return "prune"
	}
	return "leave what it has applied"
}

// applyToGenerated patches the objects generated from a root, because their controller may be slow, and reports whether
// all have the change.
func (r *remover) applyToGenerated(
	ctx context.Context, root liveRecord, change func(*unstructured.Unstructured) map[string]any,
) (bool, error) {
	made, err := listGenerated(ctx, r.cluster, root)
	if err != nil {
		return false, err
	}
	isDone := true
	for _, live := range made {
		if patch := change(live); patch != nil {
			isDone = false
			if _, err := r.cluster.Patch(ctx, kube.RefOf(live), patch); err != nil {
				return false, err
			}
			r.changes.add("%s was set to %s", kube.RefOf(live), r.effect())
		}
	}
	return isDone, nil
}

func listGenerated(ctx context.Context, cluster ObjectReader, root liveRecord) ([]*unstructured.Unstructured, error) {
	maker := reconciler.KindNamed(root.Kind)
	if maker == nil || len(maker.Makes) == 0 {
		return nil, nil
	}
	options := kube.ListOptions{Namespace: root.Namespace}
	if maker.Label != "" {
		options.LabelSelector = maker.Label + "=" + root.Name
	}
	list, err := cluster.List(ctx, listedAs(reconciler.KindNamed(maker.Makes[0])), options)
	return slices.DeleteFunc(list.Items, func(live *unstructured.Unstructured) bool {
		isOwner := func(owner metav1.OwnerReference) bool { return owner.UID == root.live.GetUID() }
		return maker.Label == "" && !slices.ContainsFunc(live.GetOwnerReferences(), isOwner) || isTerminating(live)
	}), err
}

// delete deletes objects and waits until they are gone.
func (r *remover) delete(ctx context.Context, group []liveRecord) error {
	replaced := make([]bool, len(group))
	err := forEach(len(group), func(i int) (err error) {
		replaced[i], err = r.deleteOne(ctx, group[i])
		return err
	})
	for i, one := range group {
		if replaced[i] {
			r.note("%s stays: it was made again by others", one.ID())
		}
	}
	return err
}

func (r *remover) deleteOne(ctx context.Context, one liveRecord) (replaced bool, err error) {
	uid := string(one.live.GetUID())
	if !isTerminating(one.live) {
		err := r.cluster.Delete(ctx, one.Ref, uid)
		if kube.ReasonOf(err) == kube.ReasonReplaced {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		r.changes.add("%s was deleted", one.ID())
	}
	blocker, err := untilGone(ctx, r.cluster, one.Ref, uid)
	if err != nil {
		return false, timeoutError(ctx, one.ID().String(), one.ID().String()+" was deleted, and is still there"+blocker, err)
	}
	return false, nil
}
