package assignment

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// fillFinals finds out how the final objects of changed folders change, whose files are known. before are the trees that the
// folders have. It returns false where an apply may have other lines, as an artifact could not be had now.
//
// The objects of a folder that has them before and after are in its files. Else the former objects are rendered again, from the
// files of the folder and what the record says of the manifests: nothing else keeps them. Folders that go back to pointers, or whose
// pointers were changed by hand, are not rendered: no record that the plan has is about these.
func (o *operation) fillFinals(ctx context.Context, folders []changes.FolderChange, before folder.Trees) (complete bool) {
	changed := map[int]*changes.FolderChange{} // by assignment
	for i := range folders {
		one := &folders[i]
		if one.Before == nil || one.After == nil {
			continue
		}
		if one.Back != "" || one.Drift != "" || o.backTo != nil {
			one.Finals = committedFinals(one)
			continue
		}
		if o.result == nil {
			continue
		}
		if at, ok := o.result.AssignmentIndex(one.Host, one.DeploymentTarget); ok && render.IsRendered(o.result.Schedule.Assignments[at]) {
			changed[at] = one
		}
	}
	if len(changed) == 0 || o.known == nil {
		return true
	}
	former, isSeen := o.formerOf(ctx, changed, before)
	return o.finalChanges(ctx, former, func(i int, finals *changes.Finals) { changed[i].Finals = finals }) && isSeen
}

// committedFinals is how the final objects change that a folder has in its files; nil where it does not have some before and
// after.
func committedFinals(one *changes.FolderChange) *changes.Finals {
	hasObjects := func(files []folder.File) bool {
		return slices.ContainsFunc(files, func(file folder.File) bool { return folder.IsInObjectsFolder(file.Name) })
	}
	if !hasObjects(one.Before) || !hasObjects(one.After) {
		return nil
	}
	after, err := render.FormerObjects(one.After, nil)
	before, otherErr := render.FormerObjects(one.Before, after)
	if err != nil || otherErr != nil { // whose text may have a value
		return &changes.Finals{Unknown: folder.ObjectsFile + " cannot be read"}
	}
	return &changes.Finals{Changes: changes.CompareObjects(before, after)}
}

// finalChanges gives how final objects change to yield, one at a time. It returns false where that may be another time.
func (o *operation) finalChanges(
	ctx context.Context,
	former map[int]render.FormerFolder,
	yield func(i int, finals *changes.Finals),
) (complete bool) {
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
func (o *operation) formerOf(
	ctx context.Context,
	changed map[int]*changes.FolderChange,
	before folder.Trees,
) (former map[int]render.FormerFolder, isSeen bool) {
	written, err := o.connection.Delivery.ReadSeenRecords(ctx, o.formerOwner(), o.known)
	if err != nil && !errors.Is(err, git.ErrCommit) {
		repository.AddError(ctx, o.diagnostics, err, false)
	}
	clusterTypes := o.formerClusterTypes()
	former = make(map[int]render.FormerFolder, len(changed))
	for i, one := range changed {
		of := render.FormerFolder{ClusterType: clusterTypes[o.result.Schedule.Assignments[i].Host.ClusterType.Name], Files: one.Before}
		if record, has := written[one.Key]; has && record.Tree == before[one.Host][one.DeploymentTarget] {
			of.Manifests = record.Manifests
		}
		former[i] = of
	}
	return former, err == nil
}

// upgradeLines say how final objects change where a cluster type has another version of Kubernetes, or other APIs, and the folder
// stays as it is: nothing is written then. complete is false where an apply may have other lines.
func (o *operation) upgradeLines(ctx context.Context) (lines []string, complete bool) {
	if o.result == nil || o.private == nil || o.private.Model == o.result.Value.Model || o.isUnderWay() ||
		!slices.ContainsFunc(o.result.Schedule.Assignments, render.IsRendered) {
		return nil, true
	}
	clusterTypes, former := o.formerClusterTypes(), map[int]render.FormerFolder{}
	for i, assignment := range o.result.Schedule.Assignments {
		before, now := clusterTypes[assignment.Host.ClusterType.Name], *assignment.Host.ClusterType
		if before == nil || before.KubernetesVersion == now.KubernetesVersion && slices.Equal(before.APIVersions, now.APIVersions) ||
			o.current[assignment.Host.Name][assignment.Target.Name] != o.rendering.Trees[i] || o.rendering.Trees[i] == "" {
			continue
		}
		if files, err := o.rendering.Files(ctx, i); err == nil {
			now.KubernetesVersion, now.APIVersions = before.KubernetesVersion, before.APIVersions
			former[i] = render.FormerFolder{ClusterType: &now, Manifests: &assignment.Target.Target.Manifests.Manifests, Files: files}
		}
	}
	var folders []changes.FolderChange
	complete = o.finalChanges(ctx, former, func(i int, finals *changes.Finals) {
		assignment := o.result.Schedule.Assignments[i]
		folders = append(
			folders,
			changes.FolderChange{Key: folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}, Finals: finals},
		)
	})
	after := o.version()
	return changes.SummarizeFinals(o.private.version(after.Fleet), after, folders), complete
}

// formerClusterTypes are the cluster types of the fleet that was written last, by name.
func (o *operation) formerClusterTypes() map[string]*fleet.ClusterType {
	f := o.private.fleet()
	if f == nil {
		return nil
	}
	types := make(map[string]*fleet.ClusterType, len(f.ClusterTypes))
	for i := range f.ClusterTypes {
		types[f.ClusterTypes[i].Name] = &f.ClusterTypes[i]
	}
	return types
}
