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

// ReadFiles returns the files of some folders, each list ordered by name, which has slashes for files in subfolders. The content of a
// symbolic link is where it points to, and a submodule has none. The trees of the folders decide: it does not matter what the
// tip has. wanted, when not nil, tells by its name whether a file is asked for: no other is fetched. known, when not nil, tells the
// content of files that need not be fetched: those of which the caller has one with the same id. Files takes a request for the
// trees of all folders, and one for all other files.
//
// Errors: as of Branch, or a plain one where the repository does not give a tree
// any more.
func (v *OwnerView) ReadFiles(
	ctx context.Context, folders folder.Trees, wanted func(name string) bool, known func(git.Hash) (content []byte, ok bool),
) (map[folder.Key][]git.File, error) {
	return withTip(ctx, v.Branch, func() (map[folder.Key][]git.File, error) {
		files := map[folder.Key][]git.File{}
		var level, all []entryOf
		for _, key := range folders.Keys() {
			id, err := git.ParseID(folders[key.Host][key.DeploymentTarget])
			if err != nil {
				return nil, fmt.Errorf("folder %q: %w", v.owner.folderPath(key.Host, key.DeploymentTarget), err)
			}
			level = append(level, entryOf{of: key, Entry: git.Entry{ID: id}})
			files[key] = []git.File{}
		}
		err := v.work.walkFolders(ctx, level, func(in entryOf) error {
			if !in.IsTree() {
				all = append(all, in)
			}
			return nil
		})
		if bad, ok := errors.AsType[*folderError](err); ok {
			return nil, fmt.Errorf("folder %q: %w", path.Join(v.owner.folderPath(bad.at.of.Host, bad.at.of.DeploymentTarget), bad.at.name), bad.error)
		}
		if err != nil && ctx.Err() == nil && git.Classify(err) == nil {
			err = fmt.Errorf("the repository does not give folders any more that were seen in it; refresh, and plan again: %w", err)
		}
		if err != nil {
			return nil, err
		}
		if wanted != nil {
			all = slices.DeleteFunc(all, func(p entryOf) bool { return !wanted(p.name) })
		}
		isKnown := func(p entryOf) (content []byte, ok bool) {
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
		if err := v.work.Need(ctx, missing); err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b entryOf) int { return strings.Compare(a.name, b.name) })
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

// entryOf is an entry of a folder, or of one inside it; with the name "", the folder itself.
type entryOf struct {
	of   folder.Key
	name string // from the folder
	git.Entry
}

// folderError is an error about one folder, or one inside it.
type folderError struct {
	at entryOf
	error
}

// walk calls each with all entries of folders and of those inside them, level by level: a level takes one request. An error
// about a folder is a *folderError.
func (w *layout) walkFolders(ctx context.Context, level []entryOf, each func(entryOf) error) error {
	for depth := 0; len(level) > 0; depth++ {
		ids := make([]git.Hash, len(level))
		for i, at := range level {
			ids[i] = at.ID
		}
		if err := w.Need(ctx, ids); err != nil {
			return err
		}
		var below []entryOf
		for _, at := range level {
			entries, err := w.Entries(at.ID)
			for i := 0; i < len(entries) && err == nil; i++ {
				in := entryOf{of: at.of, name: path.Join(at.name, entries[i].Name), Entry: entries[i]}
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
			return &folderError{entryOf{of: below[0].of}, fmt.Errorf("it has more than %d levels of folders in it", git.MaxDepth)}
		}
		level = below
	}
	return nil
}
