package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// ReadFoldersAt returns the owner's folders at a commit in the branch's history, as rollbacks to them. names are the
// owner's former names. It fetches records and trees only.
func (v *OwnerView) ReadFoldersAt(ctx context.Context, commit string, names ...string) (FolderEdits, error) {
	return withTip(ctx, v.Branch, func() (FolderEdits, error) {
		at, records, err := v.openPast(ctx, commit, names)
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			return nil, fmt.Errorf("%w: commit %s has no record of the assignment %q at path "+
				"%q", git.ErrCommit, commit, v.owner.Name, v.owner.Path)
		}
		formerly := ""
		if at.owner.Name != v.owner.Name {
			formerly = at.owner.Name
		}
		hosts := make(FolderEdits, len(records))
		var keys []folder.Key
		for host, record := range records {
			folders := map[string]FolderEdit{}
			for target, recorded := range record.DeploymentTargets {
				if e, ok := at.work.hostDirectory(v.owner, host).Find(target); ok && e.IsTree() {
					recorded.OwnerLabel = cmp.Or(recorded.OwnerLabel, formerly)
					folders[target] = FolderEdit{Action: RollBack, Tree: e.ID.String(), From: commit, Record: recorded.Record}
					keys = append(keys, folder.Key{Host: host, DeploymentTarget: target})
				}
			}
			hosts[host] = folders
		}
		return hosts, at.checkFilesOnly(ctx, commit, keys)
	})
}

// openPast opens a commit in the branch's history under the first name of the owner with records there: the present one,
// names, or former names in the records at the tip.
func (v *OwnerView) openPast(ctx context.Context, commit string, names []string) (at *OwnerView, records map[string]hostRecord, err error) {
	work, err := v.work.openTree(ctx, commit)
	if err != nil {
		return nil, nil, err
	}
	at = &OwnerView{Branch: v.Branch, owner: v.owner, work: work}
	read := func(name string) (map[string]hostRecord, error) {
		at.owner.Name = name
		if at.records, err = work.openOwner(ctx, at.owner, nil); err != nil {
			return nil, err
		}
		return work.readRecords(ctx, at.records)
	}
	if records, err = read(v.owner.Name); err != nil || len(records) > 0 {
		return at, records, err
	}
	now, err := v.work.readRecords(ctx, v.records)
	if err != nil {
		return nil, nil, err
	}
	for _, record := range now {
		names = slices.Concat(names, record.OwnerFormerly)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if records, err = read(name); err != nil || len(records) > 0 {
			return at, records, err
		}
	}
	records, err = read(v.owner.Name)
	return at, records, err
}

func (w *layout) openTree(ctx context.Context, commit string) (*layout, error) {
	id, err := git.ParseID(commit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", git.ErrCommit, err)
	}
	past, err := w.OpenPast(ctx, id)
	if err != nil {
		return nil, err
	}
	return newLayout(past), nil
}

// checkFilesOnly checks that folders contain only files and folders. Links and submodules were added by hand.
func (v *OwnerView) checkFilesOnly(ctx context.Context, commit string, keys []folder.Key) error {
	slices.SortFunc(keys, folder.Key.Compare)
	level := make([]folderEntry, len(keys))
	for i, k := range keys {
		level[i].of = k
		level[i].Entry, _ = v.work.hostDirectory(v.owner, k.Host).Find(k.DeploymentTarget)
	}
	err := v.work.walkFolders(ctx, level, func(in folderEntry) error {
		if err := git.CheckName(in.Name); err != nil {
			return err
		}
		if !in.IsTree() && !in.IsFile() {
			return fmt.Errorf("%q is %s", in.name, in.Kind())
		}
		return nil
	})
	if bad, ok := errors.AsType[*folderError](err); ok {
		return fmt.Errorf("%w: folder %q in commit %s: %w", git.ErrCommit,
			v.owner.folderPath(bad.at.of.Host, bad.at.of.DeploymentTarget), commit, bad.error)
	}
	return err
}

// checkRollbacks checks that the history of the tip has the commits of all rollbacks, and so their folders.
func (w *layout) checkRollbacks(ctx context.Context, edit Edit) error {
	commits := map[string]bool{}
	for _, wanted := range folder.All(edit.Hosts) {
		if wanted.Action == RollBack {
			commits[wanted.From] = true
		}
	}
	for _, commit := range slices.Sorted(maps.Keys(commits)) {
		if _, err := w.openTree(ctx, commit); err != nil {
			return err
		}
	}
	return nil
}
