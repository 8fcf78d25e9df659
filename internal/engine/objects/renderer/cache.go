package renderer

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds/published"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

const maxCacheBytes = 64 << 20

// cacheFormat must change if equal requests give other results.
const cacheFormat = 9

// cache keeps results in memory and on disk.
type cache struct {
	disk   *diskcache.Folder // nil for none
	flight singleflight.Group

	mutex sync.Mutex
	kept  lastUsed[*objects.Rendering]
}

func newCache(disk *diskcache.Folder) *cache {
	return &cache{disk: disk, kept: lastUsed[*objects.Rendering]{most: maxCacheBytes}}
}

// cacheKey identifies a result by request, libraries and the keys that verified the artifact.
func cacheKey(request *objects.Request, keys string) string {
	canonical := *request
	canonical.Artifact = artifact.Artifact{}
	text, err := json.Marshal(struct {
		Format    int
		Libraries string
		Artifact  string
		Keys      string
		Schemas   string
		Request   *objects.Request
	}{cacheFormat, libraries(), request.Artifact.Key(), keys, published.Version(), &canonical})
	if err != nil {
		panic(err) // all values fit JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

var libraries = sync.OnceValue(func() string {
	versions := []string{runtime.Version()}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return versions[0]
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "helm.sh/helm/v4", "k8s.io/api", "k8s.io/client-go", "sigs.k8s.io/kustomize/api", "sigs.k8s.io/kustomize/kyaml",
			"github.com/Masterminds/sprig/v3", "sigs.k8s.io/yaml":
			versions = append(versions, module.Path+"@"+module.Version)
		}
	}
	return strings.Join(versions, " ")
})

// abandonedError reports that the caller that rendered has gone. Others try again.
type abandonedError struct{ error }

func (e abandonedError) Unwrap() error { return e.error }

// get renders once for all concurrent calls. The version affects only errors, which are not cached.
func (c *cache) get(ctx context.Context, key, version string, render func() ([]byte, error)) (*objects.Rendering, error) {
	for {
		if result := c.inMemory(key); result != nil {
			return result, nil
		}
		flight := c.flight.DoChan(key+version, func() (any, error) {
			if text, err := c.read(key); err != nil {
				return nil, err
			} else if result, err := decode(text); err == nil {
				c.keep(key, result, len(text))
				return result, nil
			}
			text, err := render()
			if err != nil && ctx.Err() != nil {
				return nil, abandonedError{err}
			}
			if err != nil {
				return nil, err
			}
			result, err := decode(text)
			if err != nil {
				return nil, err
			}
			c.write(key, text)
			c.keep(key, result, len(text))
			return result, nil
		})
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case made := <-flight:
			if made.Err == nil {
				return made.Val.(*objects.Rendering), nil
			}
			if _, hasLeft := errors.AsType[abandonedError](made.Err); hasLeft && ctx.Err() == nil {
				continue
			}
			return nil, made.Err
		}
	}
}

func (c *cache) inMemory(key string) *objects.Rendering {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	result, _ := c.kept.get(key)
	return result
}

func (c *cache) keep(key string, result *objects.Rendering, size int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, has := c.kept.get(key); !has {
		c.kept.keep(key, result, int64(size))
	}
}

func (c *cache) read(key string) ([]byte, error) {
	if c.disk == nil {
		return nil, nil
	}
	return c.disk.Read(diskcache.Objects, key)
}

// write ignores failures: the result can be rendered again.
func (c *cache) write(key string, text []byte) {
	if c.disk != nil {
		_, _ = c.disk.Write(diskcache.Objects, key, func(to io.Writer) error {
			_, err := to.Write(text)
			return err
		})
	}
}

// lastUsed keeps the values used last, up to most bytes. It is not safe for concurrent use.
type lastUsed[T any] struct {
	most, size int64
	byName     map[string]*list.Element // of used[T]
	order      list.List                // most recent first
}

type used[T any] struct {
	name  string
	value T
	size  int64
}

func (l *lastUsed[T]) get(name string) (value T, has bool) {
	at, has := l.byName[name]
	if has {
		l.order.MoveToFront(at)
		value = at.Value.(used[T]).value
	}
	return value, has
}

// keep adds a value under a new name.
func (l *lastUsed[T]) keep(name string, value T, size int64) {
	if l.byName == nil {
		l.byName = map[string]*list.Element{}
	}
	l.byName[name] = l.order.PushFront(used[T]{name, value, size})
	for l.size += size; l.size > l.most && l.order.Len() > 1; {
		last := l.order.Remove(l.order.Back()).(used[T])
		delete(l.byName, last.name)
		l.size -= last.size
	}
}
