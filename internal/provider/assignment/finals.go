package assignment

import (
	"context"
	"errors"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// fillFinals finds out how the final objects of changed folders change, whose files are known. before are the trees that the
// folders have. It returns false where an apply may have other lines, as an artifact could not be had now.
//
// The former objects are rendered again, from the files of the folder and what the record says of the manifests: nothing else
// keeps them. Folders that go back, or were changed by hand, are not rendered.
func (o *operation) fillFinals(ctx context.Context, folders []changes.Folder, before rollout.Trees) (complete bool) {
	changed := map[int]*changes.Folder{} // by assignment
	for i := range folders {
		one := &folders[i]
		if one.Before == nil || one.After == nil || one.Back != "" || one.Drift != "" || o.result == nil || o.backTo != nil {
			continue
		}
		if at, ok := o.result.Assignment(one.Host, one.DeploymentTarget); ok && render.IsRendered(o.result.Schedule.Assignments[at]) {
			changed[at] = one
		}
	}
	if len(changed) == 0 || o.known == nil {
		return true
	}
	former, isSeen := o.formerOf(ctx, changed, before)
	return o.finalChanges(ctx, former, func(i int, finals *changes.Finals) { changed[i].Finals = finals }) && isSeen
}

// finalChanges gives how final objects change to yield, one at a time. It returns false where that may be another time.
func (o *operation) finalChanges(ctx context.Context, former map[int]render.Former, yield func(i int, finals *changes.Finals)) (complete bool) {
	var mutex sync.Mutex
	complete = true
	o.result.FinalChanges(ctx, o.rendering.Destination, former, func(i int, change *pipeline.FinalChange) {
		finals := &changes.Finals{Unknown: change.Unknown, Moved: change.Moved}
		if finals.Unknown == "" {
			finals.Changes = changes.CompareObjects(change.Before, change.After)
		}
		mutex.Lock()
		defer mutex.Unlock()
		complete = complete && !change.IsLost
		yield(i, finals)
	})
	return complete
}

// formerOf is what changed folders were made from, as the commit says that the state has seen: a plan says the same when it is
// applied. isSeen is false where that commit cannot be read now.
func (o *operation) formerOf(ctx context.Context, changed map[int]*changes.Folder, before rollout.Trees) (former map[int]render.Former, isSeen bool) {
	owner := o.intent.Owner
	owner.Name = o.known.Owner.Name
	written, err := o.connection.Delivery.SeenRecords(ctx, owner, o.known)
	if err != nil && !errors.Is(err, git.ErrCommit) {
		repository.AddError(ctx, o.diagnostics, err, false)
	}
	clusterTypes := o.formerClusterTypes()
	former = make(map[int]render.Former, len(changed))
	for i, one := range changed {
		key := rollout.Key{Host: one.Host, DeploymentTarget: one.DeploymentTarget}
		of := render.Former{ClusterType: clusterTypes[o.result.Schedule.Assignments[i].Host.ClusterType.Name], Files: one.Before}
		if record, has := written[key]; has && record.Tree == before[key.Host][key.DeploymentTarget] {
			of.Manifests = record.Manifests
		}
		former[i] = of
	}
	return former, err == nil
}

// formerClusterTypes are the cluster types of the fleet that was written last, by name.
func (o *operation) formerClusterTypes() map[string]*fleet.ClusterType {
	if o.private == nil || o.private.Model == "" {
		return nil
	}
	f, err := fleet.ParseModel(o.private.Model)
	if err != nil {
		return nil
	}
	types := make(map[string]*fleet.ClusterType, len(f.ClusterTypes))
	for i := range f.ClusterTypes {
		types[f.ClusterTypes[i].Name] = &f.ClusterTypes[i]
	}
	return types
}
