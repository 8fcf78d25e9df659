package origin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/singleflight"

	"github.com/flotilla/terraform-provider-flotilla/internal/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/budget"
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Store keeps the content of artifacts on this machine, by their keys. Its folder may be removed at any time: what is
// missing is fetched again.
type Store struct {
	client  *Client
	folder  string
	fetches singleflight.Group
	slots   chan struct{}
}

// maxFetches bounds what is fetched at once, since each content is in memory once.
const maxFetches = 4

// NewStore returns a store in a folder, which need not exist; "" is CacheFolder's.
func NewStore(client *Client, folder string) *Store {
	return &Store{client: client, folder: folder, slots: make(chan struct{}, maxFetches)}
}

// CacheFolder is where this user's artifacts are kept: FLOTILLA_CACHE_DIR, or flotilla in the user's folder for caches.
func CacheFolder() (string, error) {
	if folder := os.Getenv("FLOTILLA_CACHE_DIR"); folder != "" {
		return folder, nil
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", errors.New("there is no folder for artifacts, since this user has none for caches: set FLOTILLA_CACHE_DIR to one")
	}
	return filepath.Join(folder, "flotilla"), nil
}

// Keys implements Fetcher.
func (s *Store) Keys(of artifact.Artifact) (string, error) {
	source, err := s.client.trusted(of)
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
	if err := s.client.allows(folder.Manifests{Repo: of.Repo, Chart: of.Chart}, of.Sources); err != nil { // also for what is kept
		return "", s.client.describe(of.Repo, err)
	}
	if err := s.client.verify(ctx, of); err != nil {
		return "", err
	}
	folder := s.folder
	if folder == "" {
		var err error
		if folder, err = CacheFolder(); err != nil {
			return "", err
		}
	}
	folder, err := filepath.Abs(filepath.Join(folder, "artifacts"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(of.Key()))
	path := filepath.Join(folder, hex.EncodeToString(sum[:])+".tar")
	if isFile(path) {
		return path, nil
	}
	fetched := s.fetches.DoChan(of.Key()+of.Pin.Version, func() (any, error) {
		// Who asked first may leave, and others still wait.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
		defer cancel()
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		defer budget.Begin(ctx, budgetItem(of.Repo))()
		if isFile(path) {
			return nil, nil
		}
		files, err := s.client.fetch(ctx, of)
		if err != nil {
			return nil, s.client.describe(of.Repo, err)
		}
		return nil, writeArchive(path, files)
	})
	select {
	case result := <-fetched:
		return path, result.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (c *Client) fetch(ctx context.Context, of artifact.Artifact) (*files, error) {
	var archive []byte
	var err error
	switch {
	case of.Storage == "git":
		return c.fetchGit(ctx, of)
	case isRegistry(of.Repo):
		archive, err = c.fetchRegistry(ctx, of)
	default:
		archive, err = c.fetchChart(ctx, of)
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

// writeArchive writes the whole file or none.
func writeArchive(path string, content *files) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the content of an artifact cannot be kept in %q (FLOTILLA_CACHE_DIR names another folder): %w", filepath.Dir(path), err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := errors.Join(artifact.WriteArchive(file, content.regular, content.links), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil && !isFile(path) { // another process may have been first
		return err
	}
	return nil
}
