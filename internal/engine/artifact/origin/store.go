package origin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/singleflight"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
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

const (
	maxFiles = 50_000
	maxBytes = 128 << 20
	maxName  = 4096 // bytes of a path or a link's target
	maxDepth = 100  // folders
)

type files struct {
	regular map[string][]byte
	links   map[string]string // targets of symbolic links
	folders map[string]bool   // parents of files and links
	size    int64
}

func newFiles() *files {
	return &files{regular: map[string][]byte{}, links: map[string]string{}, folders: map[string]bool{}}
}

func (f *files) has(name string) bool {
	_, isRegular := f.regular[name]
	_, isLink := f.links[name]
	return isRegular || isLink
}

// claim checks that a path is valid and new.
func (f *files) claim(name string) error {
	switch {
	case len(name) > maxName || strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("%w: it has a path of more than %d bytes or %d folders", git.ErrTooLarge, maxName, maxDepth)
	case len(f.regular)+len(f.links) >= maxFiles:
		return errTooMany
	case f.has(name) || f.folders[name]:
		return fmt.Errorf("has %q twice", name)
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if f.has(folder) {
			return fmt.Errorf("has %q below %q, which is no folder", name, folder)
		}
		f.folders[folder] = true
	}
	return nil
}

var (
	errTooLarge = fmt.Errorf("%w: it has more than %d MiB when unpacked", git.ErrTooLarge, maxBytes>>20)
	errTooMany  = fmt.Errorf("%w: it has more than %d files", git.ErrTooLarge, maxFiles)
)

func (f *files) add(name string, content []byte) error {
	if f.size += int64(len(content)); f.size > maxBytes {
		return errTooLarge
	}
	if err := f.claim(name); err != nil {
		return err
	}
	f.regular[name] = content
	return nil
}

// addLink adds a symbolic link; the renderer refuses those out of the artifact.
func (f *files) addLink(name, target string) error {
	if len(target) > maxName {
		return fmt.Errorf("%w: the link %q has a target of more than %d bytes", git.ErrTooLarge, name, maxName)
	}
	if err := f.claim(name); err != nil {
		return err
	}
	f.links[name] = target
	return nil
}

// leaves reports whether a link may lead out of the artifact, even through others. It accepts ".." only at the start, where
// every parent is a real folder.
func leaves(name, target string) bool {
	if path.IsAbs(target) || strings.Contains(target, `\`) || target == "" {
		return true
	}
	depth, down := strings.Count(name, "/"), false
	for segment := range strings.SplitSeq(target, "/") {
		switch {
		case segment == "..":
			if depth--; depth < 0 || down {
				return true
			}
		case segment != "" && segment != ".":
			down = true
		}
	}
	return false
}

// readArchive reads an untrusted tar archive in gzip. Errors continue "its archive".
func readArchive(archive []byte) (*files, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, errors.New("is not in gzip, which charts and artifacts of Flux are")
	}
	// Headers and padding exceed the size of the files.
	reader := tar.NewReader(&bounded.Reader{From: compressed, Left: 2 * maxBytes, TooLong: errTooLarge})
	read := newFiles()
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot be read: %w", err)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name := path.Clean(header.Name)
		switch {
		case path.IsAbs(header.Name) || slices.Contains(strings.Split(header.Name, "/"), "..") ||
			strings.ContainsAny(header.Name, "\\\x00") || header.Name == "":
			return nil, fmt.Errorf("has a path %.200q, which leads out of it", header.Name)
		case header.Typeflag == tar.TypeDir:
			if name != "." && read.has(name) {
				return nil, fmt.Errorf("has %q twice", name)
			}
			continue // empty folders are ignored
		case name == ".":
			return nil, errors.New("has a file in place of its root")
		case header.Typeflag == tar.TypeReg:
			if header.Size > maxBytes-read.size {
				return nil, errTooLarge
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				return nil, fmt.Errorf("cannot be read: %w", err)
			}
			if err := read.add(name, content); err != nil {
				return nil, err
			}
		case header.Typeflag == tar.TypeSymlink:
			if leaves(name, header.Linkname) {
				return nil, fmt.Errorf("has a symbolic link %q to %.200q, which leads out of it", name, header.Linkname)
			}
			if err := read.addLink(name, header.Linkname); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("has %q, which is neither a file nor a symbolic link", name)
		}
	}
}
