package changes

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// document is one document of a YAML file.
type document struct {
	value                 any
	kind, namespace, name string
}

// sibling is one document of a file among others.
type sibling struct {
	kind          string // shown before keys that other documents of the file have, too
	before, after int
	old, wanted   []document
}

// hasOther says whether another of the documents has the path.
func (s *sibling) hasOther(at []string) bool {
	return hasElsewhere(s.old, s.before, at) || hasElsewhere(s.wanted, s.after, at)
}

func hasElsewhere(documents []document, but int, at []string) bool {
	for i := range documents {
		if i != but && hasPath(documents[i].value, at) {
			return true
		}
	}
	return false
}

func hasPath(value any, at []string) bool {
	for _, segment := range at {
		switch inner := value.(type) {
		case map[string]any:
			member, has := inner[segment]
			if !has {
				return false
			}
			value = member
		case []any:
			at, ok := indexOf(segment)
			if !ok || at >= len(inner) {
				return false
			}
			value = inner[at]
		default:
			return false
		}
	}
	return true
}

// yaml compares the documents of two texts, each with the one of the same kind, namespace and name.
func (c *collector) yaml(before, after string) bool {
	old, ok := readYAML(before)
	wanted, wantedOK := readYAML(after)
	if !ok || !wantedOK {
		return false
	}
	partner := matchDocuments(old, wanted)
	taken := make([]bool, len(wanted))
	at := func(before, after int, of *document) {
		c.object = sibling{before: before, after: after, old: old, wanted: wanted}
		if len(old) > 1 || len(wanted) > 1 {
			c.object.kind = c.shownKind(of)
		}
	}
	for i, other := range partner {
		if other < 0 {
			at(i, -1, &old[i])
			c.differs(isRemoved)
			continue
		}
		taken[other] = true
		at(i, other, &wanted[other])
		c.values(old[i].value, wanted[other].value)
	}
	for i := range wanted {
		if !taken[i] {
			at(-1, i, &wanted[i])
			c.differs(isNew)
		}
	}
	return true
}

// shownKind is the kind of one document of several. In files of configuration what looks like a kind may
// be a value.
func (c *collector) shownKind(of *document) string {
	switch {
	case c.config:
		return ""
	case of.kind == "":
		return "object"
	}
	return of.kind
}

// maxDocuments is how many documents a file may have, each of which takes some kilobytes to read.
const maxDocuments = 200

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
			if version, _ := object["apiVersion"].(string); version == "" || !isKind(read.kind) {
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

// isKind says whether a text looks like the kind of a Kubernetes object.
func isKind(text string) bool {
	if text == "" || len(text) > 63 || text[0] < 'A' || text[0] > 'Z' {
		return false
	}
	for i := 0; i < len(text); i++ {
		if c := text[i]; !isKeyByte(c) || c == '.' || c == '/' || c == '_' || c == '-' {
			return false
		}
	}
	return true
}

// matchDocuments returns, for each document before, the index of the document after that it is compared with, or
// -1: the one with the same kind, namespace and name; else with the same kind and name; else the next one of the
// kind; else the next one.
func matchDocuments(before, after []document) []int {
	partner, taken := make([]int, len(before)), make([]bool, len(after))
	for i := range partner {
		partner[i] = -1
	}
	type identity struct{ kind, namespace, name string }
	for _, of := range []func(*document) identity{
		func(o *document) identity { return identity{o.kind, o.namespace, o.name} },
		func(o *document) identity { return identity{o.kind, "", o.name} },
		func(o *document) identity { return identity{o.kind, "", ""} },
	} {
		free := map[identity][]int{}
		for i := range after {
			if !taken[i] {
				free[of(&after[i])] = append(free[of(&after[i])], i)
			}
		}
		for i := range before {
			same := of(&before[i])
			if partner[i] < 0 && len(free[same]) > 0 {
				partner[i], taken[free[same][0]] = free[same][0], true
				free[same] = free[same][1:]
			}
		}
	}
	return partner
}
