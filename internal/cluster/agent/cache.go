package agent

import (
	"slices"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Cache keeps recently parsed manifests of agents: Argo CD's have 2 MiB, and all clusters of a fleet have the same. It
// is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	texts []readText // latest first
}

const keptTexts = 8

// readText is a text that is parsed once.
type readText struct {
	text      string
	documents func() []yamlDocument
}

// yamlDocument has the types of unstructured objects. It is shared and must not be changed.
type yamlDocument struct {
	line       int
	value      any
	err        error
	violations []violation
}

// Render is [Render] with cached parsing.
func (c *Cache) Render(settings Settings) ([]StagedObject, []SettingsProblem) {
	return renderWith(settings, c.read)
}

func (c *Cache) read(text string) []yamlDocument {
	c.mu.Lock()
	one := readText{text, sync.OnceValue(func() []yamlDocument { return readDocuments(text) })}
	if at := slices.IndexFunc(c.texts, func(known readText) bool { return known.text == text }); at >= 0 {
		one = c.texts[at]
		c.texts = slices.Delete(c.texts, at, at+1)
	}
	c.texts = slices.Insert(c.texts, 0, one)
	c.texts = c.texts[:min(keptTexts, len(c.texts))]
	c.mu.Unlock()
	return one.documents()
}

// readDocuments leaves too long a text unparsed, because the caller rejects it.
func readDocuments(text string) []yamlDocument {
	parts := fleet.SplitYAML(text)
	documents := make([]yamlDocument, len(parts))
	for i, part := range parts {
		if documents[i].line = part.Line; len(parts) <= maxInstall {
			documents[i].value, documents[i].err = unstructuredValue(part.Text)
		}
	}
	checkDocuments(documents)
	return documents
}

// unstructuredValue parses a document with int64 and float64 numbers.
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
