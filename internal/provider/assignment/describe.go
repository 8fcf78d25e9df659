package assignment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// description has the lines of changes. isComplete is false if unknown values may change them at apply.
type description struct {
	lines      []string
	isComplete bool
}

func describe(ctx context.Context, c *comparison) description {
	folders, complete := c.changedFolders(ctx)
	c.warnOfReconcilers(folders)
	state := c.before.state
	notes := changes.Notes{Total: c.after.Count(), RolledBack: c.rolledBackTo(), Repaired: state.Drift.Touched}
	if c.outlook.Identity == delivery.Renamed {
		notes.HandedOver = state.Owner.Name
	}
	changed := make([]folder.Key, len(folders))
	for i, folder := range folders {
		changed[i] = folder.Key
	}
	notes.Constraints = c.constraintLines(changed)
	notes.Lines = append(c.renameLines(), c.outcome.Lines()...)
	for _, line := range state.Drift.Unsigned {
		notes.Lines = append(notes.Lines, line+": it is not believed, and written again")
	}
	if state.Drift.Request != "" {
		notes.Lines = append(notes.Lines, state.Drift.Request)
	}
	notes.Lines = append(notes.Lines, c.driftLines(folders)...)
	upgrades, isCertain := c.upgradeLines(ctx)
	notes.Lines = append(notes.Lines, upgrades...)
	after := c.goal.version()
	return description{
		lines: changes.English(changes.Summarize(c.before.private.version(after.Fleet), after, folders, notes)),
		isComplete: complete && isCertain && c.isLocated && c.connection.CanAsk() && !c.mayMove() &&
			(c.outlook.Identity != delivery.Moved || !c.model.OnDestroy.IsUnknown()),
	}
}

// changedFolders returns the changed folders, with their known files. If new files are not known yet, one folder of each
// host has its former files.
func (c *comparison) changedFolders(ctx context.Context) (folders []changes.FolderChange, complete bool) {
	before, removed := c.renames.RenameTrees(c.outlook.Before), c.renames.RenameTrees(c.outlook.Remove)
	if c.before.isNew { // read by a rollout at a commit
		before, removed = c.before.trees, c.before.trees.Without(c.after)
	}
	complete = true
	changed, back := folder.Trees{}, folder.Trees{} // present trees, and trees of folders that go back
	for _, key := range c.after.Keys() {
		tree, was := before[key.Host][key.DeploymentTarget]
		now := c.after[key.Host][key.DeploymentTarget]
		one := changes.FolderChange{Key: key, Added: !was}
		one.Drift, one.Edit = c.driftOf(key, !was)
		switch {
		case now == "":
			complete = false
			one.WaitsFor = c.waitsFor(key)
			if was && len(changed[key.Host]) == 0 {
				folder.Put(changed, key, tree)
			}
		case now == c.relocations.relocated(key, tree):
			continue
		case was:
			folder.Put(changed, key, tree)
			if c.outcome.Decisions[key.Host][key.DeploymentTarget].Action == rollout.RollBack {
				folder.Put(back, key, now)
			}
		}
		one.Back = c.rollsBackTo(key)
		folders = append(folders, one)
	}
	c.fillFiles(ctx, folders, changed, back)
	complete = c.fillFinals(ctx, folders, before) && complete
	c.warnOfRepublished(ctx, folders, before)
	for _, key := range removed.Keys() {
		folders = append(folders, changes.FolderChange{Key: key, Removed: true, Back: c.rollsBackTo(key)})
	}
	cleared := c.outlook.Cleared
	if c.outlook.Identity == delivery.Moved && !c.mayMove() && !c.model.keeps() {
		cleared = c.before.trees // even if the former location cannot be read now
	}
	for _, key := range cleared.Keys() {
		folders = append(folders, changes.FolderChange{
			Key: key, Removed: true, Location: repository.LocationText(c.before.state.Owner.Location),
		})
	}
	return folders, complete
}

func (d *decision) waitsFor(key folder.Key) string {
	if d.goal == nil {
		return ""
	}
	i, _ := d.goal.result.AssignmentIndex(key.Host, key.DeploymentTarget)
	return d.goal.rendering.WaitsFor(i)
}

// fillFiles sets the files of changed folders. The line of a folder without files names no keys.
func (c *comparison) fillFiles(ctx context.Context, folders []changes.FolderChange, changed, back folder.Trees) {
	if changed.Count() == 0 || !c.connection.CanAsk() {
		return
	}
	wanted := map[folder.Key][]git.File{}
	unread := back.Clone()
	for key := range folder.All(back) {
		if of := c.content(ctx, key); of.Files != nil {
			wanted[key], _ = of.Files()
			delete(unread[key.Host], key.DeploymentTarget)
		}
	}
	if unread.Count() > 0 {
		files, err := c.connection.Delivery.ReadFiles(ctx, c.owner, unread, nil)
		if err != nil {
			repository.AddError(ctx, c.diagnostics, err, false)
			return
		}
		maps.Copy(wanted, files)
	}
	if c.goal != nil {
		for _, key := range changed.Keys() {
			if back.Has(key.Host, key.DeploymentTarget) {
				continue
			}
			i, _ := c.goal.result.AssignmentIndex(key.Host, key.DeploymentTarget)
			if files, err := c.goal.rendering.Files(ctx, i); err == nil {
				wanted[key] = files
			}
		}
	}
	present, err := c.readPresent(ctx, changed, wanted)
	if err != nil {
		repository.AddError(ctx, c.diagnostics, err, false)
		return
	}
	for i := range folders {
		key := folders[i].Key
		if files, ok := present[key]; ok {
			if at, moves := c.relocations[key][changed[key.Host][key.DeploymentTarget]]; moves {
				files = at.files
			}
			folders[i].Before, folders[i].After = files, wanted[key]
		}
	}
	c.fillWritten(ctx, folders, wanted)
}

// fillWritten sets the files of the last apply of edited folders.
func (c *comparison) fillWritten(ctx context.Context, folders []changes.FolderChange, wanted map[folder.Key][]git.File) {
	written := folder.Trees{}
	for i := range folders {
		if key := folders[i].Key; folders[i].Edit != "" {
			folder.Put(written, key, c.before.state.Trees[key.Host][key.DeploymentTarget])
		}
	}
	if written.Count() == 0 {
		return
	}
	files, err := c.connection.Delivery.ReadFiles(ctx, c.owner, written, wanted)
	if err != nil && (ctx.Err() != nil || git.Classify(err) != nil) { // otherwise the branch has lost the commit
		repository.AddError(ctx, c.diagnostics, err, false)
	}
	for i := range folders {
		if folders[i].Edit != "" {
			folders[i].Written = files[folders[i].Key]
		}
	}
}

// readPresent returns the files of present folders. The repository lacks the trees of folders whose place changes.
func (c *comparison) readPresent(
	ctx context.Context, folders folder.Trees, wanted map[folder.Key][]git.File,
) (map[folder.Key][]git.File, error) {
	written, moved := folders.Clone(), map[folder.Key][]git.File{}
	for key, tree := range folder.All(folders) {
		if at, moves := c.relocations.at(key, tree); moves {
			delete(written[key.Host], key.DeploymentTarget)
			moved[key] = at.files
		}
	}
	present, err := c.connection.Delivery.ReadFiles(ctx, c.before.state.OnPresentBranch(c.owner), written, wanted)
	if err != nil {
		return nil, err
	}
	maps.Copy(present, moved)
	return present, nil
}

func (d *decision) driftLines(folders []changes.FolderChange) []string {
	var groups wording.Groups[string, string]
	state := d.before.state
	for i := range folders {
		if _, drifted := state.Drift.Trees[folders[i].Key]; drifted && folders[i].Drift == "" {
			groups.Add(state.Drift.Explain(folders[i].Key), folders[i].String())
		}
	}
	var lines []string
	for drift, keys := range groups.All() {
		verb := wording.OneOrMany(len(keys), "differs", "differ")
		lines = append(lines, fmt.Sprintf("%s %s from the last apply: %s", wording.List(keys, wording.Named), verb, drift))
	}
	return lines
}

// driftOf explains a change that only repairs a folder, or else a commit by hand beside the change.
func (d *decision) driftOf(key folder.Key, isAdded bool) (drift, edit string) {
	state := d.before.state
	if _, drifted := state.Drift.Trees[key]; !drifted || d.before.isNew {
		return "", ""
	}
	explained := state.Drift.Explain(key)
	switch {
	case isAdded || state.Trees[key.Host][key.DeploymentTarget] == d.after[key.Host][key.DeploymentTarget]:
		return explained, ""
	case state.Drift.Since[key] != "":
		return "", explained
	}
	return "", ""
}

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
