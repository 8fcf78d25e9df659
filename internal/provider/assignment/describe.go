package assignment

import (
	"context"
	"maps"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// describe returns the lines of the attribute changes. complete is false while something is not known yet, so that
// the apply may have other lines.
func (o *operation) describe(ctx context.Context) (lines []string, complete bool) {
	folders, complete := o.folders(ctx)
	o.warnOfReconcilers(folders)
	notes := changes.Notes{Total: o.intent.After.Count()}
	if o.backTo != nil {
		notes.RolledBack = o.model.RollbackTo.ValueString()
	}
	if o.outlook.Identity == delivery.Renamed {
		notes.HandedOver = o.known.Owner.Name
	}
	changed := make([]folder.Key, len(folders))
	for i, folder := range folders {
		changed[i] = folder.Key
	}
	notes.Constraints = o.constraintLines(changed)
	notes.Lines = o.moveLines()
	if o.outcome != nil {
		notes.Lines = append(notes.Lines, o.outcome.Lines()...)
	}
	if o.known != nil {
		notes.Repaired = o.known.Drift.Touched
		for _, line := range o.known.Drift.Unsigned {
			notes.Lines = append(notes.Lines, line+": it is not believed, and written again")
		}
		if o.known.Drift.Request != "" {
			notes.Lines = append(notes.Lines, o.known.Drift.Request)
		}
	}
	upgrades, isCertain := o.upgradeLines(ctx)
	notes.Lines = append(notes.Lines, upgrades...)
	after := o.version()
	return changes.Summarize(
			o.private.version(after.Fleet),
			after,
			folders,
			notes,
		), complete && isCertain && o.locationKnown && o.connection.CanAsk() &&
			!o.mayMove() &&
			(o.outlook.Identity != delivery.Moved || !o.model.OnDestroy.IsUnknown())
}

// version is the fleet after the change, for the causes of changes.
func (o *operation) version() *changes.Version {
	if o.result == nil {
		return &changes.Version{}
	}
	return &changes.Version{
		Fleet: o.result.Fleet, Config: o.result.Value.Config, Manifests: changes.Hashes(o.result.Value.Manifests),
		Schedule: o.result.Schedule, GitopsRepo: repository.LocationText(o.intent.Owner.Location), Provider: o.connection.Release,
	}
}

// mayMove says whether it takes a look at two locations to tell whether the assignment moves. A look at another time may
// tell otherwise.
func (o *operation) mayMove() bool {
	return o.outlook.Identity == delivery.Moved && o.known.Owner.Location.Path == o.intent.Owner.Location.Path
}

// folders returns the folders that change, with their files where these are known. Of those whose new files are not known
// yet, one for each host has its files before.
func (o *operation) folders(ctx context.Context) (folders []changes.FolderChange, complete bool) {
	before, removed, after := o.intent.Renames.RenameTrees(o.outlook.Before), o.intent.Renames.RenameTrees(o.outlook.Remove), o.intent.After
	if o.known == nil { // what a rollout has read as of a commit; else nothing
		before, removed = o.current, o.current.Without(after)
	}
	complete = true
	changed, back := folder.Trees{}, folder.Trees{} // the trees now, and of those that go back, the trees then
	for _, key := range after.Keys() {
		tree, was := before[key.Host][key.DeploymentTarget]
		now := after[key.Host][key.DeploymentTarget]
		one := changes.FolderChange{Key: key, Added: !was, Drift: o.driftOf(key)}
		switch {
		case now == "":
			complete = false
			i, _ := o.result.AssignmentIndex(key.Host, key.DeploymentTarget)
			one.WaitsFor = o.rendering.WaitsFor(i)
			if was && len(changed[key.Host]) == 0 {
				folder.Put(changed, key, tree)
			}
		case now == o.relocations.relocated(key, tree):
			continue
		case was:
			if folder.Put(changed, key, tree); o.decisions[key.Host][key.DeploymentTarget].Action == rollout.RollBack {
				folder.Put(back, key, now)
			}
		}
		one.Back = o.goesBack(key)
		folders = append(folders, one)
	}
	o.fill(ctx, folders, changed, back)
	complete = o.fillFinals(ctx, folders, before) && complete
	o.warnOfRepublished(ctx, folders, before)
	for _, key := range removed.Keys() {
		folders = append(folders, changes.FolderChange{Key: key, Removed: true, Back: o.goesBack(key)})
	}
	cleared := o.outlook.Cleared
	if o.outlook.Identity == delivery.Moved && !o.mayMove() && !o.intent.Leave {
		cleared = o.current // whether or not the former location can be read now
	}
	if cleared != nil {
		for _, key := range cleared.Keys() {
			folders = append(folders, changes.FolderChange{
				Key: key, Removed: true, Location: repository.LocationText(o.known.Owner.Location),
			})
		}
	}
	return folders, complete
}

// goesBack returns the commit to which the rollout takes a folder back; "" where it does not.
func (o *operation) goesBack(key folder.Key) string {
	if o.outcome == nil {
		return ""
	}
	if state := o.outcome.State.Targets[key.DeploymentTarget]; state != nil && state.Failed && state.Hosts[key.Host] != nil {
		return state.Hosts[key.Host].From
	}
	return ""
}

// fill reads the files of changed folders as the refresh has seen them, and renders their new files, or reads those that they go
// back to. Files that cannot be read are left out; the line about that folder then has no keys.
func (o *operation) fill(ctx context.Context, folders []changes.FolderChange, changed, back folder.Trees) {
	if changed.Count() == 0 || !o.connection.CanAsk() {
		return
	}
	wanted := map[folder.Key][]git.File{}
	for _, key := range back.Keys() {
		if of := o.formerContents(key.Host, key.DeploymentTarget); of.Files != nil {
			wanted[key], _ = of.Files()
		}
	}
	isRead := back.Clone()
	for key := range wanted {
		delete(isRead[key.Host], key.DeploymentTarget)
	}
	if isRead.Count() > 0 {
		files, err := o.connection.Delivery.ReadFiles(ctx, o.intent.Owner, isRead, nil)
		if err != nil {
			repository.AddError(ctx, o.diagnostics, err, false)
			return
		}
		maps.Copy(wanted, files)
	}
	for _, key := range changed.Keys() {
		if back.Has(key.Host, key.DeploymentTarget) {
			continue
		}
		i, _ := o.result.AssignmentIndex(key.Host, key.DeploymentTarget)
		files, err := o.rendering.Files(ctx, i)
		if err == nil {
			wanted[key] = files
		}
	}
	present, err := o.connection.Delivery.ReadFiles(ctx, o.intent.Owner, changed, wanted)
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, false)
		return
	}
	for i := range folders {
		key := folders[i].Key
		if files, ok := present[key]; ok {
			if at, moves := o.relocations[key][changed[key.Host][key.DeploymentTarget]]; moves {
				files = at.files
			}
			folders[i].Before, folders[i].After = files, wanted[folders[i].Key]
		}
	}
}

// driftOf says what changed a folder that is only repaired.
func (o *operation) driftOf(key folder.Key) string {
	if o.known == nil || o.known.Trees[key.Host][key.DeploymentTarget] != o.intent.After[key.Host][key.DeploymentTarget] {
		return ""
	}
	if _, drifted := o.known.Drift.Trees[key]; !drifted {
		return ""
	}
	return o.known.Drift.Explain(key)
}
