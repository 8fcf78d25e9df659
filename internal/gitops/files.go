package gitops

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Files returns the files of some folders, each list ordered by name, which has slashes for files in subfolders. The content of a
// symbolic link is where it points to, and a submodule has none. The trees of the folders decide: it does not matter what the
// tip has. known, when not nil, tells the content of files that need not be fetched: those of which the caller has one with
// the same id. Files takes a request for the trees of all folders, and one for all other files.
//
// Errors: as of Branch, or a plain one where the repository does not give a tree
// any more.
func (v *OwnerView) Files(
	ctx context.Context, folders folder.Trees, known func(git.Hash) (content []byte, ok bool),
) (map[folder.Key][]git.File, error) {
	return using(ctx, v.look, func() (map[folder.Key][]git.File, error) { return v.files(ctx, folders, nil, known) })
}

// FilesNamed is Files for those files whose names are wanted. No other file is fetched.
func (v *OwnerView) FilesNamed(ctx context.Context, folders folder.Trees, wanted func(name string) bool) (map[folder.Key][]git.File, error) {
	return using(ctx, v.look, func() (map[folder.Key][]git.File, error) { return v.files(ctx, folders, wanted, nil) })
}

// entryOf is an entry of a folder, or of one inside it; with the name "", the folder itself.
type entryOf struct {
	of   folder.Key
	name string // from the folder
	git.Entry
}

func (v *OwnerView) files(
	ctx context.Context, folders folder.Trees, wanted func(name string) bool, known func(git.Hash) ([]byte, bool),
) (map[folder.Key][]git.File, error) {
	files := map[folder.Key][]git.File{}
	var level, all []entryOf
	for _, key := range folders.Keys() {
		id, err := git.ParseID(folders[key.Host][key.DeploymentTarget])
		if err != nil {
			return nil, fmt.Errorf("folder %q: %w", v.owner.folder(key.Host, key.DeploymentTarget), err)
		}
		level = append(level, entryOf{of: key, Entry: git.Entry{ID: id}})
		files[key] = []git.File{}
	}
	for depth := 0; len(level) > 0; depth++ {
		if depth > git.MaxDepth {
			return nil, fmt.Errorf("folder %q has more than %d levels of folders in it", v.owner.folder(level[0].of.Host, level[0].of.DeploymentTarget), git.MaxDepth)
		}
		next, found, err := v.list(ctx, level)
		if err != nil {
			return nil, err
		}
		level, all = next, append(all, found...)
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
}

// list returns the folders and the files in folders of one level.
func (v *OwnerView) list(ctx context.Context, level []entryOf) (folders, files []entryOf, err error) {
	ids := make([]git.Hash, len(level))
	for i, at := range level {
		ids[i] = at.ID
	}
	if err := v.work.Need(ctx, ids); err != nil {
		if ctx.Err() == nil && git.Classify(err) == nil {
			err = fmt.Errorf("the repository does not give folders any more that were seen in it; refresh, and plan again: %w", err)
		}
		return nil, nil, err
	}
	for _, at := range level {
		entries, err := v.work.Entries(at.ID)
		if err != nil {
			return nil, nil, fmt.Errorf("folder %q: %w", path.Join(v.owner.folder(at.of.Host, at.of.DeploymentTarget), at.name), err)
		}
		for _, e := range entries {
			if in := (entryOf{of: at.of, name: path.Join(at.name, e.Name), Entry: e}); e.IsTree() {
				folders = append(folders, in)
			} else {
				files = append(files, in)
			}
		}
	}
	return folders, files, nil
}
