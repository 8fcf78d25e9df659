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

// Cache keeps the results of the last fleets, since a refresh, a plan and data sources compute the same ones. The zero
// value is ready for use. It is safe for concurrent use, and computes each fleet once.
type Cache struct {
	Renderer    objects.Renderer // that of the results
	Definitions Definitions      // those of the results

	mu      sync.Mutex
	entries []*cached // the latest first
}

// keptFleets is how many fleets a cache holds: each may be some hundred megabytes.
const keptFleets = 4

type cached struct {
	key      [sha256.Size]byte
	once     sync.Once
	result   *Computation
	findings []Diagnostic
}

// Compute is [Compute], but computes equal values only once.
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

// writeText adds a text with its length, so that no two lists of texts are the same.
func writeText(h hash.Hash, content string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(content)))
	h.Write(length[:])
	h.Write([]byte(content))
}
