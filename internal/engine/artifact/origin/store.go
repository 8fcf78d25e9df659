package origin

import (
	"context"
	"errors"
	"fmt"
	"io"

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
