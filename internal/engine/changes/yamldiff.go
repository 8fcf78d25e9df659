package changes

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// yamlDocument is one yamlDocument of a YAML file, or all of another file.
type yamlDocument struct {
	value any
	objects.Identity
}

// documents compares the documents of two versions of a file, each with the one of the same kind, namespace and name; else with that
// of the same kind and name; else with the next one of the kind.
func (c *collector) documents(old, wanted []yamlDocument) {
	partner, added := matched(old, wanted,
		func(d *yamlDocument) objects.Identity { return d.Identity },
		func(d *yamlDocument) objects.Identity { return objects.Identity{Kind: d.Kind, Name: d.Name} },
		func(d *yamlDocument) objects.Identity { return objects.Identity{Kind: d.Kind} },
	)
	several := len(old) > 1 || len(wanted) > 1
	for i, other := range partner {
		if other < 0 {
			c.kind, c.object = c.shownKind(&old[i], several), old[i].Kind
			c.differs(isRemoved)
			continue
		}
		c.kind, c.object = c.shownKind(&wanted[other], several), wanted[other].Kind
		c.values(old[i].value, wanted[other].value)
	}
	for _, i := range added {
		c.kind, c.object = c.shownKind(&wanted[i], several), wanted[i].Kind
		c.differs(isNew)
	}
}

// shownKind is the kind of one document of several. In files of configuration what looks like a kind may
// be a value.
func (c *collector) shownKind(of *yamlDocument, several bool) string {
	switch {
	case c.config || !several:
		return ""
	case of.Kind == "":
		return "object"
	}
	return of.Kind
}

// maxDocuments is how many documents a file may have, each of which takes some kilobytes to read.
const maxDocuments = 200

// readFile reads a file by the extension of its name. ok is false where it cannot be read, or the format has no keys.
func readFile(name, text string) (documents []yamlDocument, ok bool) {
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
	return []yamlDocument{{value: value}}, ok
}

// readYAML reads every document that holds anything.
func readYAML(text string) ([]yamlDocument, bool) {
	count := 0
	values, err := fleet.ReadYAMLDocuments(text, func(string) bool { count++; return count > maxDocuments })
	if err != nil || count > maxDocuments {
		return nil, false
	}
	documents := make([]yamlDocument, 0, len(values))
	for _, value := range values {
		if value == nil {
			continue
		}
		read := yamlDocument{value: value}
		if object, ok := value.(map[string]any); ok {
			read.Kind, _ = object["kind"].(string)
			if version, _ := object["apiVersion"].(string); version == "" || !kindOfObject.MatchString(read.Kind) {
				read.Kind = ""
			}
			metadata, _ := object["metadata"].(map[string]any)
			read.Namespace, _ = metadata["namespace"].(string)
			read.Name, _ = metadata["name"].(string)
		}
		documents = append(documents, read)
	}
	return documents, true
}

// kindOfObject is what the kind of a Kubernetes object looks like.
var kindOfObject = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// matched returns, for each element before, the index of the one after that it is compared with, or -1, and the indices of those after
// that are left. Elements are compared that have the same first key, then of the others those that have the same second key, and so
// on, in their order.
func matched[T any, K comparable](before, after []T, keys ...func(*T) K) (partner, added []int) {
	partner, taken := slices.Repeat([]int{-1}, len(before)), make([]bool, len(after))
	for _, key := range keys {
		free := map[K][]int{}
		for j := range after {
			if of := key(&after[j]); !taken[j] {
				free[of] = append(free[of], j)
			}
		}
		for i := range before {
			of := key(&before[i])
			if left := free[of]; partner[i] < 0 && len(left) > 0 {
				partner[i], taken[left[0]], free[of] = left[0], true, left[1:]
			}
		}
	}
	for j := range after {
		if !taken[j] {
			added = append(added, j)
		}
	}
	return partner, added
}
