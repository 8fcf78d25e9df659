package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// Cache computes each of the last few fleets once, because a refresh, a plan and data sources repeat them. It is safe
// for concurrent use. The zero value is ready.
type Cache struct {
	Renderer    objects.Renderer
	Definitions Definitions

	mu      sync.Mutex
	entries []*cached // latest first
}

// keptFleets bounds a cache. A computation can take some hundred megabytes.
const keptFleets = 4

type cached struct {
	key      [sha256.Size]byte
	once     sync.Once
	result   *Computation
	findings []Diagnostic
}

// Compute is [Compute] with caching.
func (c *Cache) Compute(value fleet.Value) (*Computation, []Diagnostic) {
	entry := c.entry(keyOf(value))
	entry.once.Do(func() {
		if entry.result, entry.findings = Compute(value); entry.result != nil {
			entry.result.Renderer, entry.result.Definitions = c.Renderer, c.Definitions
		}
	})
	return entry.result, entry.findings
}

func (c *Cache) entry(key [sha256.Size]byte) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.entries, func(e *cached) bool { return e.key == key })
	entry := &cached{key: key}
	if at >= 0 {
		entry = c.entries[at]
		c.entries = slices.Delete(c.entries, at, at+1)
	}
	c.entries = slices.Insert(c.entries, 0, entry)
	c.entries = c.entries[:min(keptFleets, len(c.entries))]
	return entry
}

func keyOf(value fleet.Value) (key [sha256.Size]byte) {
	h := sha256.New()
	writeText(h, value.Format)
	writeText(h, value.Environment)
	writeText(h, value.Model)
	for _, entries := range []map[string]string{value.Config, value.Manifests} {
		writeText(h, strconv.Itoa(len(entries)))
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			writeText(h, name)
			writeText(h, entries[name])
		}
	}
	h.Sum(key[:0])
	return key
}

// writeText writes a text with its length.
func writeText(h hash.Hash, content string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(content)))
	h.Write(length[:])
	h.Write([]byte(content))
}
