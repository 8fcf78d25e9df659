package origin

import (
	"context"
	"path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// fetchLevels are fetched with the commit. Each deeper level takes another request.
const fetchLevels = 32

type treeEntry struct {
	name string
	git.Entry
}

// fetchGit fetches all files, since kustomizations may refer to any. It skips submodules, as Flux does, and keeps links out of
// the repository, which may serve other purposes.
func (s *Store) fetchGit(ctx context.Context, of artifact.Artifact) (*files, error) {
	tip, err := s.resolver.options.Git.OpenRef(ctx, s.resolver.remote(of.Repo, of.Sources), of.Pin.Commit, fetchLevels)
	if err != nil {
		return nil, err
	}
	defer tip.Close()
	entries, err := listFiles(ctx, tip)
	if err != nil {
		return nil, err
	}
	ids := make([]git.Hash, len(entries))
	for i, entry := range entries {
		ids[i] = entry.ID
	}
	if err := tip.Need(ctx, ids); err != nil {
		return nil, err
	}
	read := newFiles()
	for _, entry := range entries {
		content, err := tip.Blob(entry.ID)
		if err != nil {
			return nil, err
		}
		if entry.Kind() == git.KindSymlink {
			err = read.addLink(entry.name, string(content))
		} else {
			err = read.add(entry.name, content)
		}
		if err != nil {
			return nil, err
		}
	}
	return read, nil
}

func listFiles(ctx context.Context, tip *git.Tip) ([]treeEntry, error) {
	var found []treeEntry
	level := []treeEntry{{Entry: git.Entry{ID: tip.Root}}}
	for depth := 0; len(level) > 0; depth++ {
		var ids []git.Hash
		for _, folder := range level {
			if !tip.Has(folder.ID) {
				ids = append(ids, folder.ID)
			}
		}
		if err := tip.Need(ctx, ids); err != nil {
			return nil, err
		}
		var below []treeEntry
		for _, folder := range level {
			entries, err := tip.Entries(folder.ID)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				at := treeEntry{path.Join(folder.name, entry.Name), entry}
				switch entry.Kind() {
				case git.KindFolder:
					below = append(below, at)
				case git.KindSubmodule:
				default:
					found = append(found, at)
				}
			}
			// A few bytes of trees can describe many paths by repeating the same tree.
			if len(found)+len(below) > maxFiles || depth > maxDepth {
				return nil, errTooMany
			}
		}
		level = below
	}
	return found, nil
}
