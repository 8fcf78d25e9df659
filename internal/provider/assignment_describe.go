package provider

import (
	"context"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
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
	for _, conflict := range t.outlook.Adopted {
		notes.Adopted = append(notes.Adopted, conflict.Host+"/"+conflict.DeploymentTarget)
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
	after := &changes.Version{}
	if t.result != nil {
		after = &changes.Version{
			Fleet: t.result.Fleet, Config: t.result.Value.Config, Manifests: hashesOf(t.result.Value.Manifests),
			Assignments: t.result.Schedule.Assignments, GitopsRepo: locationText(t.intent.Owner.Location), Provider: t.connection.release,
		}
	}
	return changes.Summarize(t.memory.version(), after, folders, notes), complete && t.locationKnown && t.connection.canAsk()
}

// folders returns the folders that change, with their files where these are known.
func (t *task) folders(ctx context.Context) (folders []changes.Folder, complete bool) {
	before, after := t.outlook.Before, t.intent.After
	complete = true
	changed := rollout.Trees{}
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
		case t.decisions[key.Host][key.DeploymentTarget].Action == rollout.RollBack:
		case was:
			if changed[key.Host] == nil {
				changed[key.Host] = map[string]string{}
			}
			changed[key.Host][key.DeploymentTarget] = tree
		}
		folders = append(folders, folder)
	}
	t.fill(ctx, folders, changed)
	for _, key := range t.outlook.Remove.Keys() {
		folders = append(folders, changes.Folder{Host: key.Host, DeploymentTarget: key.DeploymentTarget, Removed: true})
	}
	if t.outlook.Cleared != nil {
		for _, key := range t.outlook.Cleared.Keys() {
			folders = append(folders, changes.Folder{
				Host: key.Host, DeploymentTarget: key.DeploymentTarget, Removed: true, Location: locationText(t.known.Owner.Location),
			})
		}
	}
	return folders, complete
}

// fill reads the files of changed folders from the repository, and renders their new files. Files that cannot be read
// are left out; the line about that folder then has no keys.
func (t *task) fill(ctx context.Context, folders []changes.Folder, changed rollout.Trees) {
	if t.backTo != nil || changed.Count() == 0 || !t.connection.canAsk() {
		return
	}
	wanted := map[rollout.Key][]git.File{}
	for _, key := range changed.Keys() {
		i, _ := t.result.Assignment(key.Host, key.DeploymentTarget)
		files, err := t.rendering.Files(i)
		if err == nil {
			wanted[key] = files
		}
	}
	present, err := t.connection.delivery.Files(ctx, t.intent, wanted)
	if err != nil {
		addRepositoryError(ctx, t.diagnostics, err, false)
		return
	}
	for i := range folders {
		key := rollout.Key{Host: folders[i].Host, DeploymentTarget: folders[i].DeploymentTarget}
		if files, ok := present[key]; ok {
			folders[i].Before, folders[i].After = textsOf(files), textsOf(wanted[key])
		}
	}
}

func textsOf(files []git.File) []changes.File {
	texts := make([]changes.File, len(files))
	for i, file := range files {
		texts[i] = changes.File{Name: file.Name, Content: file.Content}
	}
	return texts
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

// locationText is a location in the form of an import.
func locationText(at delivery.Location) string { return at.URL + "#" + at.Branch + ":" + at.Path }
