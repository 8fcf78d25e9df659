package gitops

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// AsOf returns what a commit in the branch's history has of the owner: the
// folders in its records there, with their tree ids. It reads these records,
// trees, and no other blob; it may fetch them.
//
// Errors: ErrCommit, or as of Inspect.
func (v *View) AsOf(ctx context.Context, commit string) (Deployed, error) {
	release, err := v.look.hold(ctx)
	if err != nil {
		return nil, describe(v.remote, err)
	}
	defer release()
	then, err := v.work.asOf(ctx, Edit{Owner: v.owner, From: commit})
	if err != nil {
		return nil, describe(v.remote, err)
	}
	return then.want(), nil
}

// stageFrom is stage for an edit that may go back to a commit.
func (w *layout) stageFrom(ctx context.Context, edit Edit) (*change, error) {
	if edit.From == "" {
		return w.stage(ctx, edit)
	}
	then, err := w.asOf(ctx, edit)
	if err != nil {
		return nil, err
	}
	return w.stage(ctx, then)
}

// asOf makes of an edit with From one that wants what that commit has of its
// owner. The folders are trees that the repository has, so that none of their
// files is fetched or sent.
func (w *layout) asOf(ctx context.Context, edit Edit) (Edit, error) {
	id, err := git.ParseID(edit.From)
	if err != nil {
		return Edit{}, fmt.Errorf("%w: %w", git.ErrCommit, err)
	}
	root, err := w.RootOf(ctx, id)
	if err != nil {
		return Edit{}, err
	}
	at := newLayout(w.At(id, root))
	entries, err := at.openOwner(ctx, edit.Owner, nil)
	if err != nil {
		return Edit{}, err
	}
	records, err := at.readRecords(ctx, entries)
	if err != nil {
		return Edit{}, err
	}
	if len(records) == 0 {
		return Edit{}, fmt.Errorf("%w: commit %s has no record of the assignment %q at path %q", git.ErrCommit, id, edit.Owner.Name, edit.Owner.Path)
	}
	edit.Hosts = make(map[string]Host, len(records))
	var trees []git.Hash
	for host, record := range records {
		folders := map[string]Folder{}
		for target, folder := range record.DeploymentTargets {
			if e, ok := at.hostAt(edit.Owner, host).Find(target); ok && e.IsTree() {
				folders[target] = Folder{Tree: e.ID.String(), Record: folder.Record, there: true}
				trees = append(trees, e.ID)
			}
		}
		edit.Hosts[host] = Host{Folders: folders}
	}
	if err := at.Need(ctx, trees); err != nil {
		return Edit{}, err
	}
	for _, host := range slices.Sorted(maps.Keys(edit.Hosts)) {
		for target, folder := range edit.Hosts[host].Folders {
			if err := isFlat(at.Tip, folder.Tree); err != nil {
				return Edit{}, fmt.Errorf("%w: folder %q in commit %s: %w", git.ErrCommit, path.Join(edit.Owner.Path, host, target), id, err)
			}
		}
	}
	return edit, edit.check()
}

// isFlat checks that a folder is as Apply writes one: somebody may have put a
// link or a submodule into it since.
func isFlat(t *git.Tip, tree string) error {
	id, err := git.ParseID(tree)
	if err != nil {
		return err
	}
	entries, err := t.Entries(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := git.CheckName(e.Name); err != nil {
			return err
		}
		if !e.IsFile() {
			return fmt.Errorf("%q is %s", e.Name, e.Kind())
		}
	}
	return nil
}
