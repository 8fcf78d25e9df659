// Package renderer renders final objects as reconcilers do, with Helm's and kustomize's libraries. Equal requests give equal
// objects: it uses pinned artifacts and no network, clock or chance.
package renderer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// orLeave ends errors about content that only agents can render.
const orLeave = ", or leave `render` away"

func render(ctx context.Context, kept *artifactCache, archive string, request *objects.Request) (*objects.Rendering, error) {
	t, err := kept.load(request.Artifact.Key(), archive)
	if err != nil {
		return nil, err
	}
	if request.Source != nil {
		if t, err = t.archivedByFlux(request.Source); err != nil {
			return nil, err
		}
	}
	result, err := renderArtifact(ctx, t, request)
	if err != nil && ctx.Err() == nil {
		err = withoutValues(err, request, t)
	}
	return result, err
}

func renderArtifact(ctx context.Context, t *tree, request *objects.Request) (*objects.Rendering, error) {
	var err error
	folder := path.Clean(cmp.Or(request.Path, "."))
	if path.IsAbs(folder) || leavesRoot(folder) {
		return nil, fmt.Errorf("path %q is outside of it", request.Path)
	}
	if err := checkOverrides(t, folder, request.Overrides); err != nil {
		return nil, err
	}
	var all collector
	var of *objects.Chart
	switch formOf(t, folder, request) {
	case "chart":
		if folder, err = chartFolder(t, folder); err != nil {
			return nil, err
		}
		if err := checkOverrides(t, folder, request.Overrides); err != nil {
			return nil, err
		}
		loaded, err := loadChart(t, folder, request.Artifact.Chart != "")
		if err != nil {
			return nil, err
		}
		if err := renderHelm(ctx, t, loaded, folder, request, &all); err != nil {
			return nil, err
		}
		about := loaded.chart.Metadata
		of = &objects.Chart{Name: about.Name, Version: about.Version, AppVersion: about.AppVersion}
	case "kustomization":
		err = renderKustomize(t, folder, request.Kustomize, &all)
	case "directory":
		if !t.isFolder(folder) {
			return nil, fmt.Errorf("folder %q does not exist in it", folder)
		}
		err = renderDirectory(t, folder, request.Directory, &all)
	default:
		return nil, errors.New("the request has none of Helm, Kustomize and Directory")
	}
	if err != nil {
		return nil, err
	}
	if err := all.finish(request); err != nil {
		return nil, err
	}
	all.leaveOut(request.Hooks)
	result, err := all.result(request.Namespace)
	if err != nil {
		return nil, err
	}
	result.Chart = of
	return result, checkSchemas(result, request.KubernetesVersion)
}

// formOf lets the folder decide if the request allows several forms, as in Argo CD.
func formOf(t *tree, folder string, request *objects.Request) string {
	_, isChart := t.files[path.Join(folder, "Chart.yaml")]
	switch {
	case request.Helm != nil && (isChart || request.Kustomize == nil && request.Directory == nil):
		return "chart"
	case request.Kustomize != nil && (request.Directory == nil || kustomizationFile(t, folder) != ""):
		return "kustomization"
	case request.Directory != nil:
		return "directory"
	}
	return ""
}

func describe(request *objects.Request) string {
	a := request.Artifact
	at := cmp.Or(a.Pin.Version, a.Pin.Commit, a.Pin.Digest)
	switch {
	case a.Chart != "":
		return fmt.Sprintf("chart %s %s of %s", a.Chart, at, a.Repo)
	case request.Path != "":
		return fmt.Sprintf("folder %q of %s at %s", request.Path, a.Repo, at)
	}
	return fmt.Sprintf("%s at %s", a.Repo, at)
}

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
