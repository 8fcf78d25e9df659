package renderer

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/objects"
)

// Loose renders folders of files that are in memory, and of no artifact, in a worker process.
type Loose struct {
	once    sync.Once
	pool    *Pool
	archive string
	err     error
}

// looseTime is how long one folder may take.
const looseTime = 10 * time.Second

// Render renders a request for a folder of files, which are by their clean paths and the same in each call. Of the request,
// the artifact is not asked for.
func (l *Loose) Render(ctx context.Context, files map[string]string, request *objects.Request) (*objects.Result, error) {
	l.once.Do(func() {
		l.pool = New(nil, Options{Time: looseTime, Workers: 1})
		l.archive, l.err = writeArchive(files)
	})
	if l.err != nil {
		return nil, l.err
	}
	own := *request
	own.Artifact = artifact.Artifact{Pin: folder.Pin{Digest: "the files"}}
	text, err := l.pool.render(ctx, order{l.archive, &own})
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), orLeave, ""))
	}
	return decode(text)
}

// Close ends the worker, and removes what was written for it.
func (l *Loose) Close() {
	if l.pool != nil {
		l.pool.Close()
	}
	if l.archive != "" {
		_ = os.Remove(l.archive)
	}
}

func writeArchive(files map[string]string) (path string, err error) {
	file, err := os.CreateTemp("", "flotilla-files-*.tar")
	if err != nil {
		return "", err
	}
	if err := errors.Join(artifact.WriteArchive(file, files, nil), file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}
