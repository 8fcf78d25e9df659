// Package objectstest has artifacts in memory for tests.
package objectstest

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

// Archives is an artifact.Fetcher of archives added before.
type Archives struct {
	t       testing.TB
	mutex   sync.Mutex
	paths   map[string]string
	Fetched map[string]int // how often each was fetched, by key
}

// NewArchives returns a fetcher without archives.
func NewArchives(t testing.TB) *Archives {
	return &Archives{t: t, paths: map[string]string{}, Fetched: map[string]int{}}
}

// Add writes an archive of files by path. A text "-> <target>" is a symbolic link.
func (a *Archives) Add(what artifact.Artifact, files map[string]string) artifact.Artifact {
	a.t.Helper()
	regular, links := map[string]string{}, map[string]string{}
	for name, content := range files {
		if target, isLink := strings.CutPrefix(content, "-> "); isLink {
			links[name] = target
		} else {
			regular[name] = content
		}
	}
	cache := diskcache.New(filepath.Join(a.t.TempDir(), "cache"), diskcache.DefaultMaxSize)
	path, err := cache.Write(diskcache.Artifacts, what.Key(), func(to io.Writer) error { return artifact.WriteArchive(to, regular, links) })
	if err != nil {
		a.t.Fatal(err)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.paths[what.Key()] = path
	return what
}

// Keys implements artifact.Fetcher: nothing needs a signature.
func (a *Archives) Keys(artifact.Artifact) (string, error) { return "", nil }

// Fetch implements artifact.Fetcher.
func (a *Archives) Fetch(_ context.Context, what artifact.Artifact) (string, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.Fetched[what.Key()]++
	path, has := a.paths[what.Key()]
	if !has {
		return "", fmt.Errorf("artifact %q is not there", what.Key())
	}
	return path, nil
}
