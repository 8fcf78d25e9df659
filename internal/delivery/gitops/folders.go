package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

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
		return readRecords(ctx, work, at.records)
	}
	if records, err = read(v.owner.Name); err != nil || len(records) > 0 {
		return at, records, err
	}
	now, err := readRecords(ctx, v.work, v.records)
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

// ReadFiles returns the files of folders by their trees, regardless of the tip, ordered by path. A symbolic link has its
// target as content, and a submodule none. It fetches only files that wanted selects by path and known does not return by
// id; either may be nil. It takes one request for the trees and one for the files.
func (v *OwnerView) ReadFiles(
	ctx context.Context, folders folder.Trees, wanted func(name string) bool, known func(git.Hash) (content []byte, ok bool),
) (map[folder.Key][]git.File, error) {
	return withTip(ctx, v.Branch, func() (map[folder.Key][]git.File, error) {
		files := map[folder.Key][]git.File{}
		var level, all []folderEntry
		for _, key := range folders.Keys() {
			id, err := git.ParseID(folders[key.Host][key.DeploymentTarget])
			if err != nil {
				return nil, fmt.Errorf("folder %q: %w", v.owner.folderPath(key.Host, key.DeploymentTarget), err)
			}
			level = append(level, folderEntry{of: key, Entry: git.Entry{ID: id}})
			files[key] = []git.File{}
		}
		err := v.work.walkFolders(ctx, level, func(in folderEntry) error {
			if !in.IsTree() {
				all = append(all, in)
			}
			return nil
		})
		if bad, ok := errors.AsType[*folderError](err); ok {
			of := bad.at.of
			return nil, fmt.Errorf("folder %q: %w", path.Join(v.owner.folderPath(of.Host, of.DeploymentTarget), bad.at.name), bad.error)
		}
		if err != nil && ctx.Err() == nil && git.Classify(err) == nil {
			err = fmt.Errorf("the repository does not give folders any more that were seen in it; refresh, and plan again: %w", err)
		}
		if err != nil {
			return nil, err
		}
		if wanted != nil {
			all = slices.DeleteFunc(all, func(p folderEntry) bool { return !wanted(p.name) })
		}
		isKnown := func(p folderEntry) (content []byte, ok bool) {
			if p.Kind() == git.KindSubmodule || known == nil {
				return nil, p.Kind() == git.KindSubmodule
			}
			return known(p.ID)
		}
		var missing []git.Hash
		for _, p := range all {
			if _, ok := isKnown(p); !ok {
				missing = append(missing, p.ID)
			}
		}
		if err := v.work.NeedRecent(ctx, missing); err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b folderEntry) int { return strings.Compare(a.name, b.name) })
		for _, p := range all {
			content, ok := isKnown(p)
			if !ok {
				var err error
				if content, err = v.work.Blob(p.ID); err != nil {
					return nil, err
				}
			}
			files[p.of] = append(files[p.of], git.File{Name: p.name, Content: content})
		}
		return files, nil
	})
}

type folderEntry struct {
	of   folder.Key
	name string
	git.Entry
}

type folderError struct {
	at folderEntry
	error
}

// walkFolders calls each for all entries of the folders, with one request for each level. An error about a folder is a
// *folderError.
func (w *layout) walkFolders(ctx context.Context, level []folderEntry, each func(folderEntry) error) error {
	for depth := 0; len(level) > 0; depth++ {
		ids := make([]git.Hash, len(level))
		for i, at := range level {
			ids[i] = at.ID
		}
		if err := w.NeedRecent(ctx, ids); err != nil {
			return err
		}
		var below []folderEntry
		for _, at := range level {
			entries, err := w.Entries(at.ID)
			for i := 0; i < len(entries) && err == nil; i++ {
				in := folderEntry{of: at.of, name: path.Join(at.name, entries[i].Name), Entry: entries[i]}
				if in.IsTree() {
					below = append(below, in)
				}
				err = each(in)
			}
			if err != nil {
				return &folderError{at, err}
			}
		}
		if depth == git.MaxDepth && len(below) > 0 {
			return &folderError{folderEntry{of: below[0].of}, fmt.Errorf("it has more than %d levels of folders in it", git.MaxDepth)}
		}
		level = below
	}
	return nil
}
