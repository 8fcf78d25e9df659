package agent

import (
	"slices"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// Cache remembers agents' own manifests as they were read: those of Argo CD have 2 MiB, and a fleet has them once for
// each cluster. It is ready for use as it is, and safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	texts []*readText // the latest first
}

// keptTexts is how many texts a cache holds.
const keptTexts = 8

// readText is a text of YAML documents, read once.
type readText struct {
	text      string
	once      sync.Once
	documents []document
}

// document is one of a text. Nobody changes its value.
type document struct {
	line  int
	value any
	err   error
}

// Render is [Render], and reads equal texts once.
func (c *Cache) Render(settings Settings) ([]Object, []Problem) {
	return renderWith(settings, func(text string) []document {
		entry := c.entry(text)
		entry.once.Do(func() { entry.documents = readDocuments(text) })
		return entry.documents
	})
}

func (c *Cache) entry(text string) *readText {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := &readText{text: text}
	if at := slices.IndexFunc(c.texts, func(known *readText) bool { return known.text == text }); at >= 0 {
		entry = c.texts[at]
		c.texts = slices.Delete(c.texts, at, at+1)
	}
	c.texts = slices.Insert(c.texts, 0, entry)
	c.texts = c.texts[:min(keptTexts, len(c.texts))]
	return entry
}

// readDocuments reads a text. One that has too many documents is not read: who counts them refuses it.
func readDocuments(text string) []document {
	parts := fleet.SplitYAML(text)
	documents := make([]document, len(parts))
	for i, part := range parts {
		if documents[i].line = part.Line; len(parts) <= maxInstall {
			documents[i].value, documents[i].err = fleet.ParseYAML(part.Text)
		}
	}
	return documents
}
