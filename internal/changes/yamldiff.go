package changes

import (
	"path"
	"regexp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// document is one document of a YAML file, or all of another file.
type document struct {
	value                 any
	kind, namespace, name string
}

// documents compares the documents of two versions of a file, each with the one of the same kind, namespace and name.
func (c *collector) documents(old, wanted []document) {
	partner := matchDocuments(old, wanted)
	taken := make([]bool, len(wanted))
	several := len(old) > 1 || len(wanted) > 1
	for i, other := range partner {
		if other < 0 {
			c.kind, c.object = c.shownKind(&old[i], several), old[i].kind
			c.differs(isRemoved)
			continue
		}
		taken[other] = true
		c.kind, c.object = c.shownKind(&wanted[other], several), wanted[other].kind
		c.values(old[i].value, wanted[other].value)
	}
	for i := range wanted {
		if !taken[i] {
			c.kind, c.object = c.shownKind(&wanted[i], several), wanted[i].kind
			c.differs(isNew)
		}
	}
}

// shownKind is the kind of one document of several. In files of configuration what looks like a kind may
// be a value.
func (c *collector) shownKind(of *document, several bool) string {
	switch {
	case c.config || !several:
		return ""
	case of.kind == "":
		return "object"
	}
	return of.kind
}

// maxDocuments is how many documents a file may have, each of which takes some kilobytes to read.
const maxDocuments = 200

// readFile reads a file by the extension of its name. ok is false where it cannot be read, or the format has no keys.
func readFile(name, text string) (documents []document, ok bool) {
	var value any
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
		return readYAML(text)
	case ".json":
		parsed, err := fleet.ParseJSON(text)
		value, ok = parsed, err == nil
	case ".env":
		value, ok = readPairs(text, envLine)
	case ".properties":
		value, ok = readPairs(text, propertyLine)
	}
	return []document{{value: value}}, ok
}

// readYAML reads every document that holds anything.
func readYAML(text string) ([]document, bool) {
	count := 0
	values, err := fleet.ReadYAMLDocuments(text, func(string) bool { count++; return count > maxDocuments })
	if err != nil || count > maxDocuments {
		return nil, false
	}
	documents := make([]document, 0, len(values))
	for _, value := range values {
		if value == nil {
			continue
		}
		read := document{value: value}
		if object, ok := value.(map[string]any); ok {
			read.kind, _ = object["kind"].(string)
			if version, _ := object["apiVersion"].(string); version == "" || !kindOfObject.MatchString(read.kind) {
				read.kind = ""
			}
			metadata, _ := object["metadata"].(map[string]any)
			read.namespace, _ = metadata["namespace"].(string)
			read.name, _ = metadata["name"].(string)
		}
		documents = append(documents, read)
	}
	return documents, true
}

// kindOfObject is what the kind of a Kubernetes object looks like.
var kindOfObject = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// matchDocuments returns, for each document before, the index of the document after that it is compared with, or
// -1: the one with the same kind, namespace and name; else with the same kind and name; else the next one of the kind.
func matchDocuments(before, after []document) []int {
	partner, taken := make([]int, len(before)), make([]bool, len(after))
	for i := range partner {
		partner[i] = -1
	}
	for _, same := range []func(a, b *document) bool{
		func(a, b *document) bool { return a.kind == b.kind && a.namespace == b.namespace && a.name == b.name },
		func(a, b *document) bool { return a.kind == b.kind && a.name == b.name },
		func(a, b *document) bool { return a.kind == b.kind },
	} {
		for i := range before {
			for j := range after {
				if partner[i] < 0 && !taken[j] && same(&before[i], &after[j]) {
					partner[i], taken[j] = j, true
				}
			}
		}
	}
	return partner
}
