package agent

import (
	"slices"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Cache keeps the last texts of agents' own manifests as they were parsed: those of Argo CD have 2 MiB, and every cluster
// of a fleet has the same. The zero value is ready for use. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	texts []readText // the latest first
}

// keptTexts is how many texts a cache holds.
const keptTexts = 8

// readText is a text of YAML documents, which are read once.
type readText struct {
	text      string
	documents func() []document
}

// document is one YAML document of a text. Its value is as unstructured objects have it, is shared, and must not be changed.
type document struct {
	line       int
	value      any
	err        error
	violations []violation
}

// Render is [Render], but parses equal texts once.
func (c *Cache) Render(settings Settings) ([]Object, []Problem) { return renderWith(settings, c.read) }

func (c *Cache) read(text string) []document {
	c.mu.Lock()
	one := readText{text, sync.OnceValue(func() []document { return readDocuments(text) })}
	if at := slices.IndexFunc(c.texts, func(known readText) bool { return known.text == text }); at >= 0 {
		one = c.texts[at]
		c.texts = slices.Delete(c.texts, at, at+1)
	}
	c.texts = slices.Insert(c.texts, 0, one)
	c.texts = c.texts[:min(keptTexts, len(c.texts))]
	c.mu.Unlock()
	return one.documents()
}

// readDocuments parses a text. Where it has too many documents, they are not parsed, since the caller refuses them.
func readDocuments(text string) []document {
	parts := fleet.SplitYAML(text)
	documents := make([]document, len(parts))
	for i, part := range parts {
		if documents[i].line = part.Line; len(parts) <= maxInstall {
			documents[i].value, documents[i].err = unstructuredValue(part.Text)
		}
	}
	checkDocuments(documents)
	return documents
}

// unstructuredValue reads a document: whole numbers are int64, and others float64.
func unstructuredValue(text string) (value any, err error) {
	if value, err = fleet.ParseYAML(text); err != nil {
		return nil, err
	}
	json, err := fleet.CanonicalJSON(value)
	if err == nil {
		err = utiljson.Unmarshal([]byte(json), &value)
	}
	return value, err
}
