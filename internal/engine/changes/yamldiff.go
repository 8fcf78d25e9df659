package changes

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

type yamlDocument struct {
	value any
	objects.Identity
}

// compareDocuments pairs the documents of two versions by kind, namespace and name, then by kind and name, then by kind.
func (c *collector) compareDocuments(old, wanted []yamlDocument) {
	partner, added := matched(old, wanted,
		func(d *yamlDocument) objects.Identity { return d.Identity },
		func(d *yamlDocument) objects.Identity { return objects.Identity{Kind: d.Kind, Name: d.Name} },
		func(d *yamlDocument) objects.Identity { return objects.Identity{Kind: d.Kind} },
	)
	several := len(old) > 1 || len(wanted) > 1
	for i, other := range partner {
		if other < 0 {
			c.kind, c.object = c.shownKind(&old[i], several), old[i].Kind
			c.addDifference(Removed)
			continue
		}
		c.kind, c.object = c.shownKind(&wanted[other], several), wanted[other].Kind
		c.compareValues(old[i].value, wanted[other].value)
	}
	for _, i := range added {
		c.kind, c.object = c.shownKind(&wanted[i], several), wanted[i].Kind
		c.addDifference(New)
	}
}

// shownKind returns the kind of one of several documents. In configuration, a kind may be a value.
func (c *collector) shownKind(of *yamlDocument, several bool) string {
	switch {
	case c.config || !several:
		return ""
	case of.Kind == "":
		return "object"
	}
	return of.Kind
}

// maxDocuments bounds documents, which take some kilobytes each.
const maxDocuments = 200

// readFile parses a file by its extension. ok is false if it is invalid or has no keys.
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

var kindOfObject = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// matched pairs elements by first key, then the others by second key, and so on. It returns the partner of each
// element before, or -1, and the unpaired ones after.
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
