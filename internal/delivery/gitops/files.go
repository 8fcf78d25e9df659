package gitops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
