package renderer

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Loose renders files without an artifact, in a worker.
type Loose struct {
	once    sync.Once
	pool    *Pool
	folder  string // of the archive
	archive string
	err     error
}

const looseTime = 10 * time.Second

// Render renders files with clean paths, equal in each call, instead of the request's artifact.
func (l *Loose) Render(ctx context.Context, files map[string]string, request *objects.Request) (*objects.Rendering, error) {
	l.once.Do(func() {
		l.pool = NewPool(nil, PoolOptions{Time: looseTime, Workers: NewWorkers(1)})
		l.archive, l.err = l.writeArchive(files)
	})
	if l.err != nil {
		return nil, l.err
	}
	own := *request
	own.Artifact = artifact.Artifact{Pin: folder.Pin{Digest: "the files"}}
	text, err := l.pool.renderBounded(ctx, renderOrder{l.archive, &own})
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), orLeave, ""))
	}
	return decode(text)
}

// Close ends the worker.
func (l *Loose) Close() {
	if l.pool != nil {
		l.pool.Close()
	}
	if l.folder != "" {
		_ = os.RemoveAll(l.folder)
	}
}

// writeArchive creates a cache, since workers read archives only from caches.
func (l *Loose) writeArchive(files map[string]string) (path string, err error) {
	if l.folder, err = os.MkdirTemp("", "flotilla-files-"); err != nil {
		return "", err
	}
	return diskcache.New(l.folder, diskcache.DefaultMaxSize).Write(diskcache.Artifacts, "", func(to io.Writer) error {
		return artifact.WriteArchive(to, files, nil)
	})
}
