package gitops

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// FileAtTip is one file of a folder as the repository has it.
type FileAtTip struct {
	// Name is relative to the folder. It has slashes for files in subfolders, which
	// only others make.
	Name string
	// ID is what git hash-object gives for the content; git.BlobID does, too.
	ID git.Hash
	// Kind is git.KindFile, git.KindSymlink, whose content is where it points to, or
	// git.KindSubmodule, which has no content.
	Kind    string
	Content []byte
}

// Files returns the files of some folders, by host and deployment target, each
// list ordered by name. The trees of the folders decide: it does not matter what
// the tip has. known, when not nil, tells the content of files that need not be
// fetched: those of which the caller has one with the same id. Files takes a
// request for the trees of all folders, and one for all other files.
//
// Errors: as of Branch, or a plain one where the repository does not give a tree
// any more.
func (v *OwnerView) Files(
	ctx context.Context, folders folder.Trees, known func(git.Hash) (content []byte, ok bool),
) (map[string]map[string][]FileAtTip, error) {
	return using(ctx, v.look, func() (map[string]map[string][]FileAtTip, error) { return v.files(ctx, folders, known) })
}

// openFolder is a folder, or one inside it, that is being read.
type openFolder struct {
	host, target string
	inside       string // from the folder; "" is itself
	id           git.Hash
}

func (v *OwnerView) files(
	ctx context.Context, folders folder.Trees, known func(git.Hash) ([]byte, bool),
) (map[string]map[string][]FileAtTip, error) {
	var level []openFolder
	for _, host := range slices.Sorted(maps.Keys(folders)) {
		for _, target := range slices.Sorted(maps.Keys(folders[host])) {
			id, err := git.ParseID(folders[host][target])
			if err != nil {
				return nil, fmt.Errorf("folder %q: %w", v.owner.folder(host, target), err)
			}
			level = append(level, openFolder{host: host, target: target, id: id})
		}
	}
	files := map[string]map[string][]FileAtTip{}
	for depth := 0; len(level) > 0; depth++ {
		if depth > git.MaxDepth {
			return nil, fmt.Errorf("folder %q has more than %d levels of folders in it", v.owner.folder(level[0].host, level[0].target), git.MaxDepth)
		}
		next, err := v.list(ctx, level, files)
		if err != nil {
			return nil, err
		}
		level = next
	}
	return files, v.fill(ctx, files, known)
}

// list adds the files of folders of one level, and returns the folders in them.
func (v *OwnerView) list(ctx context.Context, level []openFolder, files map[string]map[string][]FileAtTip) ([]openFolder, error) {
	ids := make([]git.Hash, len(level))
	for i, folder := range level {
		ids[i] = folder.id
	}
	if err := v.work.Need(ctx, ids); err != nil {
		if ctx.Err() == nil && git.Classify(err) == nil {
			err = fmt.Errorf("the repository does not give folders any more that were seen in it; refresh, and plan again: %w", err)
		}
		return nil, err
	}
	var next []openFolder
	for _, folder := range level {
		entries, err := v.work.Entries(folder.id)
		if err != nil {
			return nil, fmt.Errorf("folder %q: %w", path.Join(v.owner.folder(folder.host, folder.target), folder.inside), err)
		}
		if files[folder.host] == nil {
			files[folder.host] = map[string][]FileAtTip{}
		}
		list := files[folder.host][folder.target]
		for _, e := range entries {
			name := path.Join(folder.inside, e.Name)
			if e.IsTree() {
				next = append(next, openFolder{host: folder.host, target: folder.target, inside: name, id: e.ID})
			} else {
				list = append(list, FileAtTip{Name: name, ID: e.ID, Kind: e.Kind()})
			}
		}
		files[folder.host][folder.target] = list
	}
	return next, nil
}

// fill puts in the contents, and orders the files.
func (v *OwnerView) fill(ctx context.Context, files map[string]map[string][]FileAtTip, known func(git.Hash) ([]byte, bool)) error {
	var missing []git.Hash
	for _, targets := range files {
		for _, list := range targets {
			slices.SortFunc(list, func(a, b FileAtTip) int { return strings.Compare(a.Name, b.Name) })
			for i := range list {
				if list[i].Kind == git.KindSubmodule {
					continue
				}
				if known != nil {
					if content, ok := known(list[i].ID); ok {
						list[i].Content = content
						continue
					}
				}
				missing = append(missing, list[i].ID)
			}
		}
	}
	if err := v.work.Need(ctx, missing); err != nil {
		return err
	}
	for _, targets := range files {
		for _, list := range targets {
			for i := range list {
				if list[i].Content != nil || list[i].Kind == git.KindSubmodule {
					continue
				}
				content, err := v.work.Blob(list[i].ID)
				if err != nil {
					return err
				}
				list[i].Content = content
			}
		}
	}
	return nil
}
