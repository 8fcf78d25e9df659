package onboarding

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Removal says which of an agent's objects are removed, and how.
type Removal struct {
	// Name is the name of the cluster, by which hubs identify it.
	Name string

	Records []Record
	// UID identifies the cluster that the records are about. A cluster with another uid is left as it is.
	UID string
	// Delete also removes the agent itself, and all that it has applied. Otherwise everything keeps running, and only
	// the objects that follow the folders and the credentials are removed.
	Delete bool
}

// Remove removes an agent's objects. The notes are sentences about what was not removed, and why.
func Remove(ctx context.Context, cluster Cluster, removal Removal) (notes []string, err error) {
	uid, err := identify(ctx, cluster, removal.UID, removal.Records)
	if err != nil {
		return nil, err
	}
	if removal.UID != "" && removal.UID != uid {
		return []string{"another cluster has taken its place, and nothing on that one is touched"}, nil
	}
	r := &remover{cluster: cluster, mark: markOf(uid), name: removal.Name, removeAll: removal.Delete}
	err = r.remove(ctx, removal.Records)
	return r.notes, err
}

// removeFormer removes the objects of the last apply that are not wanted any more. What they have applied on the
// cluster stays, since another object may follow the same folders now.
func removeFormer(ctx context.Context, cluster Cluster, wanted Wanted, look Look) (notes []string, err error) {
	if wanted.UID == "" || wanted.UID != look.UID {
		return nil, nil
	}
	objects := byID(wanted.Objects)
	former := slices.DeleteFunc(slices.Clone(wanted.Records), func(record Record) bool { return objects[record.ID()] != nil })
	r := &remover{cluster: cluster, mark: markOf(look.UID), name: nameOf(wanted.Objects), removeAll: true, keepsContent: true}
	err = r.remove(ctx, former)
	return r.notes, err
}

// nameOf is the label of the cluster that objects are of; "" where none of them has it.
func nameOf(objects []agent.Object) string {
	for i := range objects {
		if name := objects[i].GetLabels()[reconciler.ClusterLabel]; name != "" {
			return name
		}
	}
	return ""
}

// remover removes objects from one cluster.
type remover struct {
	cluster Cluster
	mark    string // of the cluster
	name    string // of the cluster whose agent, or whose former objects, are removed
	// removeAll removes all objects; otherwise only what isRemovedAlways, and the objects that follow the folders.
	removeAll bool
	// keepsContent leaves what the agent has applied on the cluster.
	keepsContent bool
	notes        []string
}

func (r *remover) note(format string, arguments ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, arguments...))
}

// liveRecord is an object that is to be removed, as it is now.
type liveRecord struct {
	*Record
	live *unstructured.Unstructured
}

func (r *remover) remove(ctx context.Context, records []Record) error {
	if err := r.release(ctx, records); err != nil {
		return err
	}
	found, err := r.find(ctx, records)
	if err != nil {
		return err
	}
	var roots, rest []liveRecord
	for _, one := range found {
		switch {
		case one.Part == agent.Root:
			roots = append(roots, one)
		case r.removeAll || isRemovedAlways(one.Record):
			rest = append(rest, one)
		}
	}
	if r.removeAll && !r.keepsContent {
		if err := r.unregister(ctx, rest); err != nil {
			return err
		}
	}
	// Before anything is deleted, pruning is off for all objects that follow the folders, or on for all.
	left, err := r.prepare(ctx, roots)
	if err != nil {
		return err
	}
	if err := r.delete(ctx, roots); err != nil {
		return err
	}
	if err := r.untilAllGone(ctx, left); err != nil {
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

// isRemovedAlways says whether an object is removed even where everything keeps running: credentials, the sources that
// read with them, and what reports to the Git host. An Argo CD project stays, since Applications of others may use it.
func isRemovedAlways(record *Record) bool {
	return record.Part == agent.Credential || record.Part == agent.Feedback || record.Part == agent.Source && reconciler.IsSource(record.Kind)
}

// find reads the objects, and leaves out those that Flotilla has not created and those that were replaced since.
func (r *remover) find(ctx context.Context, records []Record) ([]liveRecord, error) {
	lives := make([]*unstructured.Unstructured, len(records))
	err := each(len(records), func(i int) (err error) {
		lives[i], err = r.cluster.Read(ctx, records[i].Ref())
		return err
	})
	if err != nil {
		return nil, err
	}
	var found []liveRecord
	for i := range records {
		record := &records[i]
		switch live := lives[i]; {
		case live == nil || record.Partial:
		case r.isOfOther(live):
			r.note("%s stays: it is of cluster %q now", record.ID(), wording.OneLine(live.GetLabels()[reconciler.ClusterLabel]))
		case record.Created && record.UID == string(live.GetUID()) || createdHere(live, r.mark):
			found = append(found, liveRecord{record, live})
		case record.Created:
			r.note("%s stays: it was made again by others", record.ID())
		case record.Part == agent.Root:
			r.note("%s stays, and goes on: it was there before", record.ID())
		}
	}
	return r.withoutShared(ctx, found)
}

// isOfOther says whether the agent of another cluster has taken over an object.
func (r *remover) isOfOther(live *unstructured.Unstructured) bool {
	label := live.GetLabels()[reconciler.ClusterLabel]
	return r.name != "" && label != "" && label != render.LabelValue(r.name)
}

// release removes from objects of others the fields that Flotilla has set.
func (r *remover) release(ctx context.Context, records []Record) error {
	var found []liveRecord
	for i := range records {
		record := &records[i]
		if !r.releases(record) && (r.removeAll || len(record.Merged) == 0) {
			continue
		}
		live, err := r.cluster.Read(ctx, record.Ref())
		if err != nil {
			return err
		}
		if live != nil && !isTerminating(live) {
			found = append(found, liveRecord{record, live})
		}
	}
	found, err := r.withoutShared(ctx, found)
	if err != nil {
		return err
	}
	for _, one := range found {
		own := ownData(one.live)
		if !r.releases(one.Record) {
			maps.DeleteFunc(own, func(key string, _ any) bool { return !slices.Contains(one.Merged, key) })
		}
		if len(own) == 0 {
			continue
		}
		if _, err := r.cluster.Patch(ctx, one.Ref(), map[string]any{"data": own}); err != nil {
			return err
		}
	}
	return nil
}

// releases says whether all that Flotilla has set in an object of others is removed.
func (r *remover) releases(record *Record) bool {
	return record.Partial && (r.removeAll || isRemovedAlways(record))
}

// unregister makes a hub's ApplicationSets remove what they have applied to the cluster, while the hub can still reach
// it: once the labels of its type and its environment are gone, none of Flotilla's selects the cluster any more, neither
// by its type nor by itself. What ApplicationSets of others apply to it is theirs.
func (r *remover) unregister(ctx context.Context, rest []liveRecord) error {
	hub := reconciler.Hub()
	label, value, _ := strings.Cut(hub.Agent.Registers, "=")
	kind := &hub.Kinds[slices.IndexFunc(hub.Kinds, func(kind reconciler.Kind) bool { return kind.Destination != "" })]
	isMaker := func(owner metav1.OwnerReference) bool {
		return reconciler.KindNamed(owner.Kind).MakesKind(kind.Kind)
	}
	for _, one := range rest {
		if !one.OnHub || one.live.GetLabels()[label] != value || isTerminating(one.live) {
			continue
		}
		if _, err := r.cluster.Patch(ctx, one.Ref(), map[string]any{"metadata": map[string]any{"labels": map[string]any{reconciler.TypeLabel: nil, reconciler.EnvironmentLabel: nil}}}); err != nil {
			return err
		}
		var left []string
		err := poll(ctx, func() (bool, error) {
			list, err := r.cluster.List(ctx, listedAs(kind), kube.ListOptions{Namespace: one.Namespace})
			left = nil
			for _, live := range list.Items {
				name, _, _ := unstructured.NestedString(live.Object, strings.Split(kind.Destination, ".")...)
				if name == r.name && slices.ContainsFunc(live.GetOwnerReferences(), isMaker) && live.GetLabels()[reconciler.ManagedLabel] == reconciler.ManagedBy {
					left = append(left, kube.RefOf(live).String())
				}
			}
			return len(left) == 0, err
		})
		if err != nil {
			return overdue(ctx, "", "what the hub has applied to the cluster is still there: "+wording.List(left, wording.Named), err)
		}
	}
	return nil
}

// withoutShared leaves out the objects that the agents of other clusters need, too: of those that the same Argo CD has,
// which is in one namespace.
func (r *remover) withoutShared(ctx context.Context, found []liveRecord) ([]liveRecord, error) {
	if !slices.ContainsFunc(found, func(one liveRecord) bool { return one.Shared }) {
		return found, nil
	}
	clusters, err := r.cluster.List(ctx, kube.Kind{Versions: "v1", Resource: "secrets"}, kube.ListOptions{
		LabelSelector: reconciler.Hub().Agent.Registers + "," + reconciler.ClusterLabel, Skip: map[string][]string{"": {"data"}},
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(one liveRecord) bool {
		return one.Shared && slices.ContainsFunc(clusters.Items, func(other *unstructured.Unstructured) bool {
			labels := other.GetLabels()
			sameType := one.Type == "" || labels[reconciler.TypeLabel] == one.Type && (one.Environment == "" || labels[reconciler.EnvironmentLabel] == one.Environment)
			return labels[reconciler.ClusterLabel] != render.LabelValue(r.name) && sameType && other.GetNamespace() == one.Namespace && other.GetDeletionTimestamp() == nil
		})
	}), nil
}

// prepare switches pruning off for the objects that follow the folders, or on, and returns when the cluster shows that
// on all of them, and on the objects that their controllers generate. It returns what they have applied and what is to
// be removed with them; nothing where that stays.
func (r *remover) prepare(ctx context.Context, roots []liveRecord) (*reconciled, error) {
	change, left := reconciler.WithoutPruning, &reconciled{}
	if r.removeAll && !r.keepsContent {
		change = reconciler.WithPruning
		var err error
		if left, err = r.collect(ctx, roots); err == nil {
			err = r.keepNamespacesInUse(ctx, left)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, root := range roots {
		if isTerminating(root.live) {
			continue
		}
		id, what := root.ID().String(), "pruning was not changed in time, and nothing was removed"
		err := poll(ctx, func() (bool, error) { return r.changed(ctx, root.Ref(), change) })
		if err == nil {
			err = poll(ctx, func() (bool, error) { return r.generated(ctx, root, change) })
		}
		if err != nil {
			return nil, overdue(ctx, id, id+": "+what, err)
		}
	}
	return left, nil
}

// changed patches an object and says whether no patch is needed any more.
func (r *remover) changed(ctx context.Context, ref kube.Ref, change func(*unstructured.Unstructured) map[string]any) (bool, error) {
	live, err := r.cluster.Read(ctx, ref)
	if err != nil || live == nil || isTerminating(live) {
		return err == nil, err
	}
	patch := change(live)
	if patch == nil {
		return true, nil
	}
	_, err = r.cluster.Patch(ctx, ref, patch)
	return false, err
}

// generated says whether the objects that a controller generates from a root have the change, too: the Applications of an
// ApplicationSet, the Bundles of a GitRepo. It patches those that do not have it yet, since their controller may be slow.
func (r *remover) generated(ctx context.Context, root liveRecord, change func(*unstructured.Unstructured) map[string]any) (bool, error) {
	maker := reconciler.KindNamed(root.Kind)
	if maker == nil || len(maker.Makes) == 0 {
		return true, nil
	}
	options := kube.ListOptions{Namespace: root.Namespace}
	if maker.Label != "" {
		options.LabelSelector = maker.Label + "=" + root.Name
	}
	list, err := r.cluster.List(ctx, listedAs(reconciler.KindNamed(maker.Makes[0])), options)
	if err != nil {
		return false, err
	}
	isDone := true
	for _, live := range list.Items {
		owned := slices.ContainsFunc(live.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == root.live.GetUID() })
		if maker.Label == "" && !owned || isTerminating(live) {
			continue
		}
		if patch := change(live); patch != nil {
			isDone = false
			if _, err := r.cluster.Patch(ctx, kube.RefOf(live), patch); err != nil {
				return false, err
			}
		}
	}
	return isDone, nil
}

// delete deletes objects and waits until they have gone.
func (r *remover) delete(ctx context.Context, group []liveRecord) error {
	replaced := make([]bool, len(group))
	err := each(len(group), func(i int) (err error) {
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

// deleteOne deletes an object and waits until it has gone, unless others have made it again.
func (r *remover) deleteOne(ctx context.Context, one liveRecord) (replaced bool, err error) {
	uid := string(one.live.GetUID())
	if !isTerminating(one.live) {
		err := r.cluster.Delete(ctx, one.Ref(), uid)
		if kube.ReasonOf(err) == kube.ReasonReplaced {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	blocker, err := untilGone(ctx, r.cluster, one.Ref(), uid)
	if err != nil {
		return false, overdue(ctx, one.ID().String(), one.ID().String()+" was deleted, and is still there"+blocker, err)
	}
	return false, nil
}
