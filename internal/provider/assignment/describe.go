package assignment

import (
	"context"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// describe returns the lines of the attribute changes. complete is false while something is not known yet, so that
// the apply may have other lines.
func (t *task) describe(ctx context.Context) (lines []string, complete bool) {
	folders, complete := t.folders(ctx)
	notes := changes.Notes{Total: t.intent.After.Count()}
	if t.backTo != nil {
		notes.RolledBack = t.model.RollbackTo.ValueString()
	}
	if t.outlook.Identity == delivery.Renamed {
		notes.HandedOver = t.known.Owner.Name
	}
	if t.known != nil {
		notes.Repaired = t.known.Drift.Touched
	}
	changed := make([]rollout.Key, len(folders))
	for i, folder := range folders {
		changed[i] = rollout.Key{Host: folder.Host, DeploymentTarget: folder.DeploymentTarget}
	}
	notes.Constraints = t.constraintLines(changed)
	if t.outcome != nil {
		notes.Lines = t.outcome.Lines()
	}
	if t.known != nil {
		for _, line := range t.known.Drift.Unsigned {
			notes.Lines = append(notes.Lines, line+": it is not believed, and written again")
		}
	}
	if t.known != nil && t.known.Drift.Request != "" {
		notes.Lines = append(notes.Lines, t.known.Drift.Request)
	}
	after := &changes.Version{}
	if t.result != nil {
		after = &changes.Version{
			Fleet: t.result.Fleet, Config: t.result.Value.Config, Manifests: hashesOf(t.result.Value.Manifests),
			Schedule: t.result.Schedule, GitopsRepo: repository.LocationText(t.intent.Owner.Location), Provider: t.connection.Release,
		}
	}
	return changes.Summarize(t.private.version(), after, folders, notes), complete && t.locationKnown && t.connection.CanAsk() && !t.mayMove() &&
		(t.outlook.Identity != delivery.Moved || !t.model.OnDestroy.IsUnknown())
}

// mayMove says whether it takes a look at two locations to tell whether the assignment moves. A look at another time may
// tell otherwise.
func (t *task) mayMove() bool {
	return t.outlook.Identity == delivery.Moved && t.known.Owner.Location.Path == t.intent.Owner.Location.Path
}

// folders returns the folders that change, with their files where these are known.
func (t *task) folders(ctx context.Context) (folders []changes.Folder, complete bool) {
	before, removed, after := t.outlook.Before, t.outlook.Remove, t.intent.After
	if t.known == nil { // what a rollout has read as of a commit; else nothing
		before, removed = t.current, t.current.Without(after)
	}
	complete = true
	changed, back := rollout.Trees{}, rollout.Trees{} // the trees now, and of those that go back, the trees then
	put := func(trees rollout.Trees, key rollout.Key, tree string) {
		if trees[key.Host] == nil {
			trees[key.Host] = map[string]string{}
		}
		trees[key.Host][key.DeploymentTarget] = tree
	}
	for _, key := range after.Keys() {
		tree, was := before[key.Host][key.DeploymentTarget]
		now := after[key.Host][key.DeploymentTarget]
		folder := changes.Folder{Host: key.Host, DeploymentTarget: key.DeploymentTarget, Added: !was, Drift: t.driftOf(key)}
		switch {
		case now == "":
			complete = false
			i, _ := t.result.Assignment(key.Host, key.DeploymentTarget)
			folder.WaitsFor = t.rendering.WaitsFor(i)
		case now == tree:
			continue
		case was:
			if put(changed, key, tree); t.decisions[key.Host][key.DeploymentTarget].Action == rollout.RollBack {
				put(back, key, now)
			}
		}
		folder.Back = t.goesBack(key)
		folders = append(folders, folder)
	}
	t.fill(ctx, folders, changed, back)
	for _, key := range removed.Keys() {
		folders = append(folders, changes.Folder{Host: key.Host, DeploymentTarget: key.DeploymentTarget, Removed: true, Back: t.goesBack(key)})
	}
	cleared := t.outlook.Cleared
	if t.outlook.Identity == delivery.Moved && !t.mayMove() && !t.intent.Leave {
		cleared = t.current // whether or not the former location can be read now
	}
	if cleared != nil {
		for _, key := range cleared.Keys() {
			folders = append(folders, changes.Folder{
				Host: key.Host, DeploymentTarget: key.DeploymentTarget, Removed: true, Location: repository.LocationText(t.known.Owner.Location),
			})
		}
	}
	return folders, complete
}

// goesBack returns the commit to which the rollout takes a folder back; "" where it does not.
func (t *task) goesBack(key rollout.Key) string {
	if t.outcome == nil {
		return ""
	}
	if state := t.outcome.State.Targets[key.DeploymentTarget]; state != nil && state.Failed && state.Hosts[key.Host] != nil {
		return state.Hosts[key.Host].From
	}
	return ""
}

// fill reads the files of changed folders as the refresh has seen them, and renders their new files, or reads those that they go
// back to. Files that cannot be read are left out; the line about that folder then has no keys.
func (t *task) fill(ctx context.Context, folders []changes.Folder, changed, back rollout.Trees) {
	if changed.Count() == 0 || !t.connection.CanAsk() {
		return
	}
	wanted := map[rollout.Key][]git.File{}
	if back.Count() > 0 {
		files, err := t.connection.Delivery.Files(ctx, t.intent.Owner, back, nil)
		if err != nil {
			repository.AddError(ctx, t.diagnostics, err, false)
			return
		}
		wanted = files
	}
	for _, key := range changed.Keys() {
		if back.Has(key.Host, key.DeploymentTarget) {
			continue
		}
		i, _ := t.result.Assignment(key.Host, key.DeploymentTarget)
		files, err := t.rendering.Files(i)
		if err == nil {
			wanted[key] = files
		}
	}
	present, err := t.connection.Delivery.Files(ctx, t.intent.Owner, changed, wanted)
	if err != nil {
		repository.AddError(ctx, t.diagnostics, err, false)
		return
	}
	for i := range folders {
		key := rollout.Key{Host: folders[i].Host, DeploymentTarget: folders[i].DeploymentTarget}
		if files, ok := present[key]; ok {
			folders[i].Before, folders[i].After = repository.ChangedFiles(files), repository.ChangedFiles(wanted[key])
		}
	}
}

// driftOf says what changed a folder that is only repaired.
func (t *task) driftOf(key rollout.Key) string {
	if t.known == nil || t.known.Trees[key.Host][key.DeploymentTarget] != t.intent.After[key.Host][key.DeploymentTarget] {
		return ""
	}
	if _, drifted := t.known.Drift.Trees[key]; !drifted {
		return ""
	}
	if commit := t.known.Drift.Since[key]; commit != "" {
		return fmt.Sprintf("by hand, since commit %.8s", commit)
	}
	if t.known.Drift.Gone {
		return "the repository is gone"
	}
	return "by hand"
}
