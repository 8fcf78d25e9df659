package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"golang.org/x/sync/singleflight"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Store caches artifacts on this machine.
type Store struct {
	resolver *Resolver
	cache    *diskcache.Folder
	verified wait.Answers[struct{}] // by artifact and trusted keys
	fetches  singleflight.Group
	slots    chan struct{}
}

// maxFetches limits parallel fetches, which hold their content in memory.
const maxFetches = 4

// NewStore writes archives to cache.
func NewStore(resolver *Resolver, cache *diskcache.Folder) *Store {
	return &Store{resolver: resolver, cache: cache, slots: make(chan struct{}, maxFetches)}
}

// Keys implements Fetcher.
func (s *Store) Keys(of artifact.Artifact) (string, error) {
	source, err := s.trusted(of)
	if err != nil || source == nil {
		return "", err
	}
	return source.name, nil
}

// Fetch implements Fetcher.
func (s *Store) Fetch(ctx context.Context, of artifact.Artifact) (string, error) {
	if err := artifact.CheckPin(of.Storage, of.Pin); err != nil {
		return "", fmt.Errorf("repository %q: %w", of.Repo, err)
	}
	if err := s.resolver.allows(folder.Manifests{Repo: of.Repo, Chart: of.Chart}, of.Sources); err != nil { // also for cached content
		return "", s.resolver.describe(of.Repo, err)
	}
	if err := s.verify(ctx, of); err != nil {
		return "", err
	}
	if path, has, err := s.cache.Find(diskcache.Artifacts, of.Key()); has || err != nil {
		return path, err
	}
	fetched := s.fetches.DoChan(of.Key()+of.Pin.Version, func() (any, error) {
		// Others may wait for the fetch.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
		defer cancel()
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		defer budget.Begin(ctx, budgetItem(of.Repo))()
		if path, has, err := s.cache.Find(diskcache.Artifacts, of.Key()); has || err != nil {
			return path, err
		}
		files, err := s.fetch(ctx, of)
		if err != nil {
			return "", s.resolver.describe(of.Repo, err)
		}
		return s.cache.Write(diskcache.Artifacts, of.Key(), func(to io.Writer) error {
			return artifact.WriteArchive(to, files.regular, files.links)
		})
	})
	select {
	case result := <-fetched:
		return result.Val.(string), result.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (s *Store) fetch(ctx context.Context, of artifact.Artifact) (*files, error) {
	var archive []byte
	var err error
	switch {
	case of.Storage == "git":
		return s.fetchGit(ctx, of)
	case artifact.IsRegistry(of.Repo):
		archive, err = s.fetchRegistry(ctx, of)
	default:
		archive, err = s.fetchChart(ctx, of)
	}
	if err != nil {
		return nil, err
	}
	read, err := readArchive(archive)
	if err == nil {
		return read, nil
	}
	subject := "its archive"
	if of.Chart != "" {
		subject = fmt.Sprintf("the archive of chart %q %s", of.Chart, of.Pin.Version)
	}
	if errors.Is(err, git.ErrTooLarge) {
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	return nil, fmt.Errorf("%s %w", subject, err)
}

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
