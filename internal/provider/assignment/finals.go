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

// fillFinals sets the changes of final objects. It returns false if an artifact is not available now, so that the apply may
// have other lines.
//
// A folder with objects before and after has them in its files. Otherwise the former objects, which are kept nowhere, are
// rendered again from the folder's files and the manifests in its record. Folders that go back to pointers, or whose
// pointers were changed by hand, are not rendered: the plan has no record of them.
func (c *comparison) fillFinals(ctx context.Context, folders []changes.FolderChange, before folder.Trees) (complete bool) {
	changed := map[int]*changes.FolderChange{} // by assignment
	for i := range folders {
		one := &folders[i]
		if one.Before == nil || one.After == nil {
			continue
		}
		if one.Back != "" || one.Drift != "" || c.goal == nil {
			one.Finals = committedFinals(one)
			continue
		}
		at, ok := c.goal.result.AssignmentIndex(one.Host, one.DeploymentTarget)
		if ok && render.IsRendered(c.goal.result.Schedule.Assignments[at]) {
			changed[at] = one
		}
	}
	if len(changed) == 0 || c.before.isNew {
		return true
	}
	former, isSeen := c.formerOf(ctx, changed, before)
	return c.goal.finalChanges(ctx, former, func(i int, finals *changes.Finals) { changed[i].Finals = finals }) && isSeen
}

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

// finalChanges returns false if a later call may find other changes.
func (g *fleetGoal) finalChanges(
	ctx context.Context, former map[int]render.FormerFolder, yield func(i int, finals *changes.Finals),
) (complete bool) {
	var mutex sync.Mutex
	complete = true
	g.result.FinalChanges(ctx, g.rendering.Destination, former, func(i int, change *pipeline.FinalChange) {
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

// formerOf returns the sources of changed folders from the records at the commit of the refresh, as the apply does. isSeen
// is false if that cannot be read now.
func (c *comparison) formerOf(
	ctx context.Context, changed map[int]*changes.FolderChange, before folder.Trees,
) (former map[int]render.FormerFolder, isSeen bool) {
	written, err := c.connection.Delivery.ReadSeenRecords(ctx, c.formerOwner(), c.before.state)
	if err != nil && !errors.Is(err, git.ErrCommit) {
		repository.AddError(ctx, c.diagnostics, err, false)
	}
	clusterTypes := c.before.private.clusterTypes()
	former = make(map[int]render.FormerFolder, len(changed))
	for i, one := range changed {
		clusterType := clusterTypes[c.goal.result.Schedule.Assignments[i].Host.ClusterType.Name]
		of := render.FormerFolder{ClusterType: clusterType, Files: one.Before}
		if record, has := written[one.Key]; has && record.Tree == before[one.Host][one.DeploymentTarget] {
			of.Manifests = record.Manifests
		}
		former[i] = of
	}
	return former, err == nil
}

// upgradeLines describes final objects that change with the Kubernetes version or the APIs of a cluster type while their
// folder stays.
func (d *decision) upgradeLines(ctx context.Context) (lines []string, complete bool) {
	goal, private := d.goal, d.before.private
	if goal == nil || private.Model == "" || private.Model == goal.result.Value.Model || d.isUnderWay() ||
		!slices.ContainsFunc(goal.result.Schedule.Assignments, render.IsRendered) {
		return nil, true
	}
	clusterTypes, former := private.clusterTypes(), map[int]render.FormerFolder{}
	for i, assignment := range goal.result.Schedule.Assignments {
		before, now := clusterTypes[assignment.Host.ClusterType.Name], *assignment.Host.ClusterType
		tree := goal.rendering.Trees[i]
		if before == nil || before.KubernetesVersion == now.KubernetesVersion && slices.Equal(before.APIVersions, now.APIVersions) ||
			tree == "" || d.before.trees[assignment.Host.Name][assignment.Target.Name] != tree {
			continue
		}
		if files, err := goal.rendering.Files(ctx, i); err == nil {
			now.KubernetesVersion, now.APIVersions = before.KubernetesVersion, before.APIVersions
			former[i] = render.FormerFolder{ClusterType: &now, Manifests: &assignment.Target.Target.Manifests.Manifests, Files: files}
		}
	}
	var folders []changes.FolderChange
	complete = goal.finalChanges(ctx, former, func(i int, finals *changes.Finals) {
		assignment := goal.result.Schedule.Assignments[i]
		key := folder.Key{Host: assignment.Host.Name, DeploymentTarget: assignment.Target.Name}
		folders = append(folders, changes.FolderChange{Key: key, Finals: finals})
	})
	after := goal.version()
	return changes.English(changes.SummarizeFinals(private.version(after.Fleet), after, folders)), complete
}

func (m *assignmentPrivate) clusterTypes() map[string]*fleet.ClusterType {
	f := m.fleet()
	if f == nil {
		return nil
	}
	types := make(map[string]*fleet.ClusterType, len(f.ClusterTypes))
	for i := range f.ClusterTypes {
		types[f.ClusterTypes[i].Name] = &f.ClusterTypes[i]
	}
	return types
}
